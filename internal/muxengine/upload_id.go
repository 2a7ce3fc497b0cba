package muxengine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/suaveplan/storagemux/internal/storage"
)

// uploadID is an upload of a mux: the uploads that its leaves know, in the order
// of the tree, and the version that the object will have. All that it takes to
// go on is in it, so that any replica can.
type uploadID struct {
	Version string       `json:"v,omitempty"`
	Leaves  []leafUpload `json:"u"`
}

// leafUpload is the upload on one leaf. A mux that is nested as a storage of its
// own is a leaf too, and ID is its uploadID.
type leafUpload struct {
	Leaf leafKey `json:"l"`
	ID   string  `json:"i"`
}

// leafKey stands for the identity of a leaf. A member that was removed and added
// again as another one has another.
type leafKey uint64

func (k leafKey) MarshalText() ([]byte, error) {
	return strconv.AppendUint(nil, uint64(k), 36), nil
}

func (k *leafKey) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 36, 64)
	*k = leafKey(n)
	return err
}

func (m *member) leafKey() leafKey { return leafKey(xxhash.Sum64String(m.state.id)) }

// encode returns the id in the form that storage.Multipart speaks of.
func (u uploadID) encode() (string, error) {
	raw, err := json.Marshal(u)
	if err != nil {
		return "", fmt.Errorf("encode an upload id: %w", err)
	}
	if len(raw) > storage.MaxUploadIDBytes {
		return "", storage.Errorf(storage.CodeUnsupported, "CreateUpload",
			"the ids of an upload on %d backends are longer than %d bytes", len(u.Leaves), storage.MaxUploadIDBytes)
	}
	return string(raw), nil
}

func decodeUploadID(id string) (uploadID, error) {
	var u uploadID
	if len(id) > storage.MaxUploadIDBytes || json.Unmarshal([]byte(id), &u) != nil || len(u.Leaves) == 0 {
		return uploadID{}, noUpload("the upload id is none of this mux")
	}
	return u, nil
}

func noUpload(format string, args ...any) *storage.Error {
	return storage.Errorf(storage.CodeUploadNotFound, "", format, args...)
}

// position returns where the leaf's upload is, or -1.
func (u *uploadID) position(leaf leafKey) int {
	for i := range u.Leaves {
		if u.Leaves[i].Leaf == leaf {
			return i
		}
	}
	return -1
}

// covers reports whether the member, or a leaf below it, has a part in the
// upload.
func (u *uploadID) covers(m *member) bool {
	if m.nested == nil {
		return u.position(m.leafKey()) >= 0
	}
	for _, below := range m.nested.members {
		if u.covers(below) {
			return true
		}
	}
	return false
}

// partTags are the entity tags that the leaves of an upload gave one part, by
// their position in the id; "" where a leaf has not got the part.
type partTags []string

// merge takes over what other knows.
func (t partTags) merge(other partTags) {
	for i, tag := range other {
		if tag != "" {
			t[i] = tag
		}
	}
}

// composite begins a tag that leaves which tag differently have made together.
const composite = "smx-"

// encode returns the tag that clients see. Where all leaves gave the same, it is
// that one; else it has a hash of each leaf's, so that CompleteUpload can tell
// which leaves hold the part that the client means.
func (t partTags) encode() string {
	one, same := "", true
	for _, tag := range t {
		switch {
		case tag == "":
		case one == "":
			one = tag
		case tag != one:
			same = false
		}
	}
	if same {
		return one
	}
	var b strings.Builder
	b.WriteString(composite)
	for _, tag := range t {
		fmt.Fprintf(&b, "%016x", tagHash(tag))
	}
	return b.String()
}

func tagHash(tag string) uint64 {
	if tag == "" {
		return 0
	}
	return xxhash.Sum64String(tag)
}

// holds reports whether tag, as a client names a part, means the part to which
// the leaf at position gave own.
func holds(tag string, position, leaves int, own string) bool {
	if own == "" {
		return false
	}
	hashes, ok := strings.CutPrefix(tag, composite)
	if !ok || len(hashes) != 16*leaves {
		return tag == own
	}
	return hashes[16*position:16*position+16] == fmt.Sprintf("%016x", tagHash(own))
}
