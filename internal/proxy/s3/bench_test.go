package s3

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// nothing is a store that costs nothing.
type nothing struct {
	storage.Storage
	data []byte
}

func (n nothing) GetStream(context.Context, string, storage.GetOptions) (*storage.Object, error) {
	return &storage.Object{
		Info: storage.Info{Size: int64(len(n.data)), ETag: "x"}, Length: int64(len(n.data)),
		Body: io.NopCloser(bytes.NewReader(n.data)),
	}, nil
}

func (n nothing) SetStream(_ context.Context, _ string, body storage.Body, _ storage.SetOptions) (storage.Info, error) {
	r, err := body.Open()
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return storage.Info{ETag: "x"}, err
}

func benchmarkFront(b *testing.B, sign func(*front) *http.Request, body []byte) {
	f := newFront(b, nothing{memory.New(0), content(64 << 10)})
	f.handler.opts.Metrics = noMetrics{}
	r := sign(f)
	sent := body
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	w := newRawRecorder()
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		f.handler.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}

func BenchmarkGet64KiB(b *testing.B) {
	benchmarkFront(b, func(f *front) *http.Request { return f.sign(f.request(http.MethodGet, path("k"), nil), nil) }, nil)
}

func BenchmarkHead(b *testing.B) {
	f := newFront(b, override{Storage: memory.New(0), stat: func(context.Context, string, storage.StatOptions) (storage.Info, error) {
		return storage.Info{ETag: "x"}, nil
	}})
	f.handler.opts.Metrics = noMetrics{}
	r := f.sign(f.request(http.MethodHead, path("k"), nil), nil)
	w := newRawRecorder()
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		f.handler.ServeHTTP(w, r)
	}
}

func BenchmarkPut64KiB(b *testing.B) {
	for name, form := range bodyForms {
		b.Run(name, func(b *testing.B) {
			benchmarkFront(b, func(f *front) *http.Request { return form(f, "k", content(64<<10)) }, nil)
		})
	}
	b.Run("unsigned", func(b *testing.B) {
		benchmarkFront(b, func(f *front) *http.Request {
			return f.sign(f.request(http.MethodPut, path("k"), content(64<<10), "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"), nil)
		}, nil)
	})
}

func BenchmarkList1000(b *testing.B) {
	var page storage.ListPage
	for range 1000 {
		page.Objects = append(page.Objects, storage.Info{Key: "some/key/of/usual/length.jpg", Size: 1000, ETag: "d41d8cd98f00b204e9800998ecf8427e"})
	}
	f := newFront(b, override{Storage: memory.New(0), list: func(context.Context, storage.ListOptions) (storage.ListPage, error) { return page, nil }})
	f.handler.opts.Metrics = noMetrics{}
	r := f.sign(f.request(http.MethodGet, "/assets?list-type=2", nil), nil)
	w := newRawRecorder()
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		f.handler.ServeHTTP(w, r)
	}
}
