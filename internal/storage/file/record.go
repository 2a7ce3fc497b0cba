package file

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// record is what an object's extended attribute holds. Size and Modified are
// those of the file when it was written: if they differ, somebody else changed
// the content, and the rest no longer describes it.
type record struct {
	Version   int                `json:"v"`
	Size      int64              `json:"size"`
	Modified  int64              `json:"mtime"` // in nanoseconds
	ETag      string             `json:"etag"`
	Headers   storage.Headers    `json:"headers,omitzero"`
	Metadata  map[string]string  `json:"metadata,omitempty"`
	Tags      map[string]string  `json:"tags,omitempty"`
	Checksums *storage.Checksums `json:"checksums,omitempty"`
}

// maxRecord is what is read of an extended attribute.
const maxRecord = 64 << 10

// writeRecord describes f, whose content is complete, by info and tags.
func writeRecord(f *os.File, info storage.Info, tags map[string]string) error {
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	r := record{
		Version: 1, Size: stat.Size(), Modified: stat.ModTime().UnixNano(),
		ETag: info.ETag, Headers: info.Headers, Metadata: info.Metadata, Tags: tags,
	}
	if storage.NewVerifier(info.Checksums) != nil {
		r.Checksums = &info.Checksums
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return setAttribute(f, data)
}

// describe returns what is known of the object in f.
func describe(key string, f *os.File, withRecord bool) (storage.Info, error) {
	info, _, err := describeTagged(key, f, withRecord)
	return info, err
}

// describeTagged is describe and returns also the object's tags.
func describeTagged(key string, f *os.File, withRecord bool) (storage.Info, map[string]string, error) {
	stat, err := f.Stat()
	if err != nil {
		return storage.Info{}, nil, err
	}
	info := storage.Info{
		Key: key, Size: stat.Size(), ModTime: stat.ModTime().UTC(),
		ETag: fmt.Sprintf("W/%x-%x", stat.Size(), stat.ModTime().UnixNano()),
	}
	if !withRecord {
		return info, nil, nil
	}
	data, err := getAttribute(f)
	if err != nil || data == nil {
		return info, nil, err
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Version != 1 || r.Size != info.Size || !sameTime(r.Modified, stat.ModTime()) {
		return info, nil, nil
	}
	info.ETag, info.Headers, info.Metadata, info.TagCount = r.ETag, r.Headers, r.Metadata, len(r.Tags)
	if r.Checksums != nil {
		info.Checksums = *r.Checksums
	}
	return info, r.Tags, nil
}

// sameTime compares a time of modification as it was set with what the file
// system kept of it; some keep microseconds or seconds only.
func sameTime(set int64, kept time.Time) bool {
	k := kept.UnixNano()
	for _, unit := range []time.Duration{1, 100, time.Microsecond, time.Millisecond, time.Second} {
		if u := int64(unit); k%u == 0 && set/u == k/u {
			return true
		}
	}
	return false
}
