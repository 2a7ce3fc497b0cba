package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

var failureChecks = []check{
	{name: "cut writes leave the old object", run: cutWrites},
	{name: "cancelled before", run: cancelledBefore},
	{name: "cancelled writes leave the old object", run: cancelledWrites},
	{name: "cancelled reads end at once", run: cancelledReads},
	{name: "reads closed early leave nothing open", run: readsClosedEarly},
}

var errBroken = errors.New("the client's connection broke")

// failing is a reader that fails.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

func cutWrites(s *suite) {
	old := []byte("the old object")
	sizes := []int64{1, 100, 1 << 16, 1<<16 + 1, 1 << 20, 3<<20 + 5, 7 << 20}
	for i, size := range sizes {
		if size > s.MaxBody {
			break
		}
		content := func(n int64) io.Reader { return noise(uint64(i), n) }
		cuts := map[string]storage.Body{
			"one byte short":                      storage.Stream(content(size-1), size),
			"half":                                storage.Stream(content(size/2), size),
			"one byte long":                       storage.Stream(content(size+1), size),
			"error at the end":                    storage.Stream(io.MultiReader(content(size), failing{}), size),
			"error one byte before":               storage.Stream(io.MultiReader(content(size-1), failing{}), size),
			"error at the start":                  storage.Stream(failing{}, size),
			"error at the end of unknown length":  storage.Stream(io.MultiReader(content(size), failing{}), -1),
			"error in the middle, unknown length": storage.Stream(io.MultiReader(content(size/2), failing{}), -1),
		}
		for name, body := range cuts {
			key := fmt.Sprintf("key-%d", size)
			s.set(key, old)
			_, err := s.store.SetStream(s.ctx, key, body, storage.SetOptions{})
			s.wantCode(err, storage.CodeInvalidBody, "%d bytes, %s", size, name)
			if strings.HasPrefix(name, "error") && !errors.Is(err, errBroken) {
				s.Errorf("%d bytes, %s: the error %v does not tell why", size, name, err)
			}
			s.want(key, old)
		}
		fresh := fmt.Sprintf("fresh-%d", size)
		_, err := s.store.SetStream(s.ctx, fresh, storage.Stream(content(size-1), size), storage.SetOptions{})
		s.wantCode(err, storage.CodeInvalidBody, "%d bytes to a new key, one byte short", size)
		_, err = s.store.Stat(s.ctx, fresh, storage.StatOptions{})
		s.wantCode(err, storage.CodeKeyNotFound, "stat of what was cut")
	}
	s.wantNoDebris("cut writes")
}

func cancelledBefore(s *suite) {
	s.set("key", []byte("content"))
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	operations := map[string]func() error{
		"get": func() error {
			obj, err := s.store.GetStream(ctx, "key", storage.GetOptions{})
			if err == nil {
				_, err = io.ReadAll(obj.Body)
				obj.Body.Close()
			}
			return err
		},
		"set": func() error {
			_, err := storage.Set(ctx, s.store, "key", []byte("new"), storage.SetOptions{})
			return err
		},
		"delete": func() error { return s.store.Delete(ctx, "key") },
		"list": func() error {
			_, err := s.store.List(ctx, storage.ListOptions{})
			return err
		},
		"stat": func() error {
			_, err := s.store.Stat(ctx, "key", storage.StatOptions{})
			return err
		},
	}
	if s.store.Capabilities().PartialWrite {
		operations["partial write"] = func() error {
			_, err := s.store.SetPartial(ctx, "key", 0, storage.Bytes([]byte("new")))
			return err
		}
	}
	for name, operation := range operations {
		began := time.Now()
		if err := operation(); storage.Classify(err) != storage.ClassAbort {
			s.Errorf("%s: got %v, want an abort", name, err)
		}
		if took := time.Since(began); took > soon {
			s.Errorf("%s took %s to notice", name, took)
		}
	}
	s.want("key", []byte("content"))
}

// endless is a body that yields some bytes and then blocks until it is closed,
// as that of a client which stalls.
type endless struct {
	start int64
	size  int64
}

func (b endless) Open() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.Copy(w, noise(5, b.start))
	}()
	return r, nil
}
func (b endless) Size() int64    { return b.size }
func (endless) Replayable() bool { return true }

func cancelledWrites(s *suite) {
	old := []byte("the old object")
	for _, start := range []int64{0, 10, 1 << 17, 6 << 20} {
		for _, size := range []int64{-1, 64 << 20} {
			s.set("key", old)
			ctx, cancel := context.WithCancelCause(s.ctx)
			done := make(chan error, 1)
			go func() {
				_, err := s.store.SetStream(ctx, "key", endless{start, size}, storage.SetOptions{})
				done <- err
			}()
			time.Sleep(50 * time.Millisecond)
			cancelled := time.Now()
			cancel(context.Canceled)
			err := <-done
			if took := time.Since(cancelled); took > soon {
				s.Errorf("a write stalled after %d bytes took %s to notice its cancellation", start, took)
			}
			if storage.Classify(err) != storage.ClassAbort {
				s.Errorf("a write cancelled after %d bytes: got %v, want an abort", start, err)
			}
			s.want("key", old)
		}
	}
	s.wantNoDebris("cancelled writes")
}

func cancelledReads(s *suite) {
	data := noiseBytes(6, s.MaxBody)
	s.set("key", data)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	obj, err := s.store.GetStream(ctx, "key", storage.GetOptions{})
	if err != nil {
		s.Fatalf("get: %v", err)
	}
	defer obj.Body.Close()
	if _, err := io.ReadFull(obj.Body, make([]byte, 1000)); err != nil {
		s.Fatalf("reading the start: %v", err)
	}
	cancelled := time.Now()
	cancel()
	n, err := io.Copy(io.Discard, obj.Body)
	if storage.Classify(err) != storage.ClassAbort {
		s.Errorf("after %d bytes and the cancellation: got %v, want an abort", 1000+n, err)
	}
	if took := time.Since(cancelled); took > soon {
		s.Errorf("a read took %s to notice its cancellation", took)
	}
}

func readsClosedEarly(s *suite) {
	s.set("key", noiseBytes(7, s.MaxBody))
	for i := range 20 {
		obj, err := s.store.GetStream(s.ctx, "key", storage.GetOptions{})
		if err != nil {
			s.Fatalf("get: %v", err)
		}
		if _, err := io.CopyN(io.Discard, obj.Body, int64(i)*1000); err != nil {
			s.Errorf("reading the start: %v", err)
		}
		if err := obj.Body.Close(); err != nil {
			s.Errorf("closing early: %v", err)
		}
		if _, err := obj.Body.Read(make([]byte, 1)); err == nil {
			s.Error("a closed body can be read")
		}
	}
}
