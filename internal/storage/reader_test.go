package storage

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReaderHandsOutTheLastByteOnlyWhenTheBodyIsWhole(t *testing.T) {
	sum := md5.Sum([]byte("content"))
	broken := errors.New("connection lost")
	tests := map[string]struct {
		source io.Reader
		size   int64
		sums   Checksums
		want   Code
		cause  error
	}{
		"whole":                    {strings.NewReader("content"), 7, Checksums{}, "", nil},
		"whole, byte by byte":      {iotest.OneByteReader(strings.NewReader("content")), 7, Checksums{MD5: sum[:]}, "", nil},
		"whole, data with EOF":     {iotest.DataErrReader(strings.NewReader("content")), 7, Checksums{MD5: sum[:]}, "", nil},
		"whole, of unknown length": {strings.NewReader("content"), -1, Checksums{MD5: sum[:]}, "", nil},
		"one byte short":           {strings.NewReader("conten"), 7, Checksums{}, CodeInvalidBody, nil},
		"one byte long":            {strings.NewReader("content!"), 7, Checksums{}, CodeInvalidBody, nil},
		"long from the start":      {strings.NewReader("content"), 0, Checksums{}, CodeInvalidBody, nil},
		"error at the end":         {io.MultiReader(strings.NewReader("content"), iotest.ErrReader(broken)), 7, Checksums{}, CodeInvalidBody, broken},
		"error before":             {io.MultiReader(strings.NewReader("cont"), iotest.ErrReader(broken)), 7, Checksums{}, CodeInvalidBody, broken},
		"cut by its reader":        {io.MultiReader(strings.NewReader("cont"), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, Checksums{}, CodeInvalidBody, io.ErrUnexpectedEOF},
		"an error of its own":      {iotest.ErrReader(ErrKeyNotFound), 7, Checksums{}, CodeKeyNotFound, nil},
		"wrong checksum":           {strings.NewReader("c0ntent"), 7, Checksums{MD5: sum[:]}, CodeInvalidBody, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := OpenBody(t.Context(), "SetStream", Stream(tt.source, tt.size), tt.sums)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(r)
			if CodeOf(err) != tt.want || tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("got %v, want %s by %v", err, tt.want, tt.cause)
			}
			if r.Err() != err || r.Whole() != (err == nil) {
				t.Errorf("Err() = %v, Whole() = %t after %v", r.Err(), r.Whole(), err)
			}
			if err == nil && string(got) != "content" {
				t.Errorf("got %q", got)
			}
			if err != nil && tt.size >= 0 && int64(len(got)) >= max(tt.size, 1) {
				t.Errorf("handed out %d bytes of a body that is not to be stored", len(got))
			}
		})
	}
}

func TestReaderReturnsAtOnceWhenTheContextEnds(t *testing.T) {
	pr, pw := io.Pipe()
	defer pw.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := OpenBody(ctx, "SetStream", closableBody{pr}, Checksums{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go cancel()
	if _, err = io.ReadAll(r); Classify(err) != ClassAbort {
		t.Errorf("got %v, want an abort", err)
	}
}

type closableBody struct{ io.ReadCloser }

func (b closableBody) Open() (io.ReadCloser, error) { return b.ReadCloser, nil }
func (closableBody) Size() int64                    { return -1 }
func (closableBody) Replayable() bool               { return false }

func TestBodiesOpenAsOftenAsTheySay(t *testing.T) {
	for _, body := range []Body{Bytes([]byte("x")), Stream(bytes.NewReader([]byte("x")), 1)} {
		if _, err := body.Open(); err != nil {
			t.Fatal(err)
		}
		_, err := body.Open()
		if (err == nil) != body.Replayable() || err != nil && !errors.Is(err, ErrConsumed) {
			t.Errorf("%T, replayable %t, opened again: %v", body, body.Replayable(), err)
		}
	}
}
