package muxconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode sets d.Hash and returns the document as it goes into the Secret. It
// fails if d is not valid or larger than MaxBytes.
func Encode(d *Document) ([]byte, error) {
	hash, err := ContentHash(d)
	if err != nil {
		return nil, err
	}
	d.Hash = hash
	if err := Validate(d); err != nil {
		return nil, err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	if len(data) > MaxBytes {
		return nil, invalid("", "the document has %d bytes and must have at most %d", len(data), MaxBytes)
	}
	return data, nil
}

// Decode reads what Encode wrote. It refuses unknown fields, unknown schema
// versions, a hash that does not fit and everything that Validate refuses.
func Decode(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, invalid("", "the document has %d bytes and must have at most %d", len(data), MaxBytes)
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}
	if version.Schema < MinSchemaVersion || version.Schema > SchemaVersion {
		return nil, invalid("schema", "version %d must be %d to %d", version.Schema, MinSchemaVersion, SchemaVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	d := &Document{}
	if err := dec.Decode(d); err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("", "nothing must follow the document")
	}
	hash, err := ContentHash(d)
	if err != nil {
		return nil, err
	}
	if hash != d.Hash {
		return nil, invalid("hash", "must be the hash of the content")
	}
	if err := Validate(d); err != nil {
		return nil, err
	}
	return d, nil
}

// ContentHash is the SHA-256, in hex, of all of d but Revision, Transitions
// and Hash: two documents with one hash mean the same.
func ContentHash(d *Document) (string, error) {
	content := *d
	content.Revision, content.Transitions, content.Hash = 0, 0, ""
	data, err := json.Marshal(&content)
	if err != nil {
		return "", fmt.Errorf("hash the document: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
