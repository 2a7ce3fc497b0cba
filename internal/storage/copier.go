package storage

import "context"

// Copier is implemented by stores that can copy what they hold without sending
// it through their client.
type Copier interface {
	// CopyObject stores the content of source under key as well, whole or not
	// at all. Codes: those of GetStream for the source, where a condition that
	// does not hold is always PRECONDITION_FAILED, and those of SetStream.
	CopyObject(ctx context.Context, key, source string, opts CopyOptions) (Info, error)

	// UploadPartCopy makes a part of source, or of the range of it that opts
	// name, a part of an upload as UploadPart does.
	UploadPartCopy(ctx context.Context, key, upload string, number int, source string, opts CopyPartOptions) (Part, error)
}

// CopyOptions say how CopyObject stores the copy.
type CopyOptions struct {
	// Source holds the conditions on the object that is copied.
	Source Conditions
	// Same, if set, must accept the object that is copied, else the copy is
	// PRECONDITION_FAILED.
	Same func(Info) bool
	// Replace says that Headers, Metadata and Tags are the copy's. Without it
	// the copy has those of its source, the version of a mux included.
	Replace  bool
	Headers  Headers
	Metadata map[string]string
	Tags     map[string]string
	// Conditions must hold of what is under the key of the copy, as in
	// SetOptions.
	Conditions Conditions
}

// CopyPartOptions say what UploadPartCopy copies.
type CopyPartOptions struct {
	// Source and Same are as in CopyOptions.
	Source Conditions
	Same   func(Info) bool
	// Range is the part of it to copy; nil is all of it.
	Range *Range
}

// CopyOf names the content of a stored object, or of a part of it.
type CopyOf struct {
	// Source is the object, as the store that is to write the copy described
	// it: it is copied only where its version, or else its size and its strong
	// entity tag, are these.
	Source Info
	// Range is the part of it; nil is all of it.
	Range *Range
}
