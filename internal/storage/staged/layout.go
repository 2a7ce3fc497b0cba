package staged

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Keys of an upload, all of them below ReservedParts:
//
//	open/ID/upload          what the upload is of; it runs as long as this is there
//	open/ID/d/NONCE         the content of a part
//	open/ID/p/NNN/MARKER    says which part that is; see marker
//	done/ID                 that the upload was completed, and to what
//
// An ID begins with the time, so that lists of them are in its order. Markers are
// never overwritten: of those of one part the newest counts.
const (
	openPrefix = storage.ReservedParts + "open/"
	donePrefix = storage.ReservedParts + "done/"
)

func prefixOf(id string) string       { return openPrefix + id + "/" }
func manifestKey(id string) string    { return prefixOf(id) + "upload" }
func dataKey(id, nonce string) string { return prefixOf(id) + "d/" + nonce }
func markersPrefix(id string) string  { return prefixOf(id) + "p/" }
func doneKey(id string) string        { return donePrefix + id }
func partPrefix(id string, n int) string {
	return fmt.Sprintf("%s%03d/%05d-", markersPrefix(id), n/100, n)
}

// newID returns a name for an upload that begins now.
func newID(now time.Time) string { return fmt.Sprintf("%012x-%s", now.UnixMilli(), rand.Text()) }

// begunAt returns when the upload of id began; false says that id is none.
func begunAt(id string) (time.Time, bool) {
	ms, nonce, ok := strings.Cut(id, "-")
	if !ok || len(ms) != 12 || !isNonce(nonce) {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(ms, 16, 64)
	return time.UnixMilli(n).UTC(), err == nil && n >= 0
}

// isNonce reports whether s looks like what rand.Text gives.
func isNonce(s string) bool {
	return len(s) == 26 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// marker says of a part what is known of it. All of it is in the key, so that a
// list of keys tells everything.
type marker struct {
	number int
	at     int64 // nanoseconds since 1970, when the part was whole
	size   int64
	hash   uint64 // XXH64
	nonce  string
}

func (m marker) key(id string) string {
	return fmt.Sprintf("%s%016x-%x-%016x-%s", partPrefix(id, m.number), m.at, m.size, m.hash, m.nonce)
}

// etag depends on nothing but the content. It cannot be taken for an MD5.
func (m marker) etag() string { return fmt.Sprintf("xxh64-%x-%d", m.hash, m.size) }

func (m marker) part() storage.Part {
	return storage.Part{Number: m.number, ETag: m.etag(), Size: m.size, ModTime: time.Unix(0, m.at).UTC()}
}

// newer reports whether m counts if both are of the same part.
func (m marker) newer(o marker) bool { return m.at > o.at || m.at == o.at && m.nonce > o.nonce }

// parseMarker is the inverse of key.
func parseMarker(id, key string) (m marker, ok bool) {
	rest, ok := strings.CutPrefix(key, markersPrefix(id))
	_, name, ok2 := strings.Cut(rest, "/")
	fields := strings.Split(name, "-")
	if !ok || !ok2 || len(fields) != 5 || len(fields[3]) != 16 || !isNonce(fields[4]) {
		return marker{}, false
	}
	var errs [4]error
	m.number, errs[0] = strconv.Atoi(fields[0])
	m.at, errs[1] = strconv.ParseInt(fields[1], 16, 64)
	m.size, errs[2] = strconv.ParseInt(fields[2], 16, 64)
	m.hash, errs[3] = strconv.ParseUint(fields[3], 16, 64)
	m.nonce = fields[4]
	return m, errs == [4]error{} && m.key(id) == key
}

// manifest is what is stored of an upload when it begins.
type manifest struct {
	Version  int               `json:"v"`
	Key      string            `json:"key"`
	Headers  storage.Headers   `json:"headers,omitzero"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
}

// done is what is stored of an upload that was completed.
type done struct {
	Version int       `json:"v"`
	Key     string    `json:"key"`
	Parts   string    `json:"parts"` // see digest
	Size    int64     `json:"size"`
	ETag    string    `json:"etag,omitempty"`
	ModTime time.Time `json:"mtime"`
}

// is reports whether info is the object that the upload became.
func (d done) is(info storage.Info) bool {
	if storage.StrongTag(d.ETag) {
		return d.Size == info.Size && d.ETag == info.ETag
	}
	return d.Size == info.Size && d.ETag == info.ETag && d.ModTime.Equal(info.ModTime)
}

// digest tells lists of parts apart.
func digest(parts []storage.Part) string {
	hash := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(hash, "%d %s\n", p.Number, p.ETag)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
