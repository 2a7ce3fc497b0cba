package muxengine

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// corrupting is a store whose network changes a byte of each content.
type corrupting struct {
	storage.Storage
	at int
}

func (c corrupting) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	obj, err := c.Storage.GetStream(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(obj.Body)
	if err != nil {
		return nil, err
	}
	data[c.at] ^= 1
	obj.Body = io.NopCloser(bytes.NewReader(data))
	return obj, nil
}

func TestABodyWithoutItsChecksumIsNeverWhole(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	sums := storage.Checksums{CRC32C: []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}}
	for name, test := range map[string]struct {
		at    int
		piece func(io.Reader) io.Reader
		whole bool
	}{
		"one read, which another member repeats":       {5, func(r io.Reader) io.Reader { return r }, true},
		"in pieces, of which the first have gone out":  {5, iotest.HalfReader, false},
		"in pieces, of which the last is another":      {len(data) - 1, iotest.HalfReader, false},
		"a byte at a time, of which the last is wrong": {len(data) - 1, iotest.OneByteReader, false},
	} {
		good, bad := memory.New(0), memory.New(0)
		for _, store := range []storage.Storage{good, bad} {
			opts := storage.SetOptions{Checksums: sums, Metadata: map[string]string{versionKey: "v1"}}
			if _, err := storage.Set(t.Context(), store, "k", data, opts); err != nil {
				t.Fatal(err)
			}
		}
		m, err := New(Config{Mode: ModeFailover, Members: []Member{
			{Name: "bad", Storage: corrupting{bad, test.at}}, {Name: "good", Storage: good},
		}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		obj, err := m.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		into := make([]byte, len(data)+1)
		n, err := io.ReadFull(test.piece(obj.Body), into)
		_ = obj.Body.Close()
		whole := err == io.ErrUnexpectedEOF && n == len(data)
		if whole != test.whole || whole && !bytes.Equal(into[:n], data) || !whole && n == len(data) {
			t.Errorf("%s: %d bytes of %d, %v", name, n, len(data), err)
		}
		if s := m.Stats().Members[0]; s.State != StateDown || s.Errors != 1 {
			t.Errorf("%s: the member that sent it is %s, with %d errors", name, s.State, s.Errors)
		}
		m.Close()
	}
}
