package s3

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// getAttributes answers GetObjectAttributes with those that were asked for.
// Parts are never among them: an object here is whole.
func getAttributes(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(strings.Join(q.r.Header.Values("X-Amz-Object-Attributes"), ","), ",") {
		switch name = strings.TrimSpace(name); name {
		case "ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize":
			wanted[name] = true
		default:
			return invalidArgument("x-amz-object-attributes must name ETag, Checksum, ObjectParts, StorageClass or ObjectSize.")
		}
	}
	info, err := q.cfg.Storage.Stat(q.r.Context(), q.target.key, storage.StatOptions{})
	if err != nil {
		return err
	}
	d := newDocument()
	d.root("GetObjectAttributesResponse")
	if wanted["ETag"] {
		d.text("ETag", clientETag(info, q.cfg.Storage.Capabilities().Identity))
	}
	if wanted["Checksum"] {
		writeChecksumElement(d, info.Checksums)
	}
	if wanted["StorageClass"] {
		d.text("StorageClass", "STANDARD")
	}
	if wanted["ObjectSize"] {
		d.number("ObjectSize", info.Size)
	}
	d.close("GetObjectAttributesResponse")
	if !info.ModTime.IsZero() {
		q.w.Header()["Last-Modified"] = []string{info.ModTime.UTC().Format(http.TimeFormat)}
	}
	q.servedBy(info.ServedBy)
	return q.writeDocument(http.StatusOK, d)
}

func writeChecksumElement(d document, sums storage.Checksums) {
	d.open("Checksum")
	known := false
	for _, one := range []struct {
		name string
		sum  []byte
	}{
		{"ChecksumCRC32", sums.CRC32}, {"ChecksumCRC32C", sums.CRC32C}, {"ChecksumCRC64NVME", sums.CRC64NVME},
		{"ChecksumSHA1", sums.SHA1}, {"ChecksumSHA256", sums.SHA256},
	} {
		if one.sum != nil {
			d.text(one.name, base64.StdEncoding.EncodeToString(one.sum))
			known = true
		}
	}
	if known {
		d.text("ChecksumType", "FULL_OBJECT")
	}
	d.close("Checksum")
}
