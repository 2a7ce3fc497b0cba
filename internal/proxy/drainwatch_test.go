package proxy

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
)

// watched runs f in a bubble of virtual time, with the drains of a server
// followed.
func watched(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.drains.run(ctx) })
		f(t, s)
		cancel()
		running.Wait()
		s.applier.close()
	})
}

// spreadDocument is one whose keys live on any one member, with the first
// member in that phase of a drain.
func spreadDocument(revision int64, phase muxconfig.DrainPhase) *muxconfig.Document {
	d := testDocument(revision, "a", "b")
	d.Muxes[0].Keyspace = muxconfig.KeyspaceSpread
	setDrain(d, phase, time.Hour)
	return d
}

func setDrain(d *muxconfig.Document, phase muxconfig.DrainPhase, within time.Duration) {
	if phase == "" {
		return
	}
	drain := &muxconfig.Drain{Phase: phase}
	if phase == muxconfig.DrainGranted {
		deadline := time.Now().Add(within)
		drain.Deadline = &deadline
	}
	d.Muxes[0].Members[0].Drain = drain
}

// seqOf returns the newest seq that is worth an answer.
func seqOf(s *Server) uint64 {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.change
}

func drainOf(s *Server) muxconfig.DrainReport {
	synctest.Wait()
	if d := s.facts().report().Members[0].Drain; d != nil {
		return *d
	}
	return muxconfig.DrainReport{}
}

func set(t *testing.T, s *Server, key string) {
	t.Helper()
	if _, err := storage.Set(t.Context(), s.applier.served.Load().generations.list[0], key, []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAGrantedDrainIsDoneWhenTheLastRequestHasGone(t *testing.T) {
	watched(t, func(t *testing.T, s *Server) {
		mustTake(t, s, testDocument(1, "a", "b"))
		set(t, s, "key")
		object, err := s.applier.served.Load().mux.GetStream(t.Context(), "key", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := testDocument(2, "a", "b")
		setDrain(d, muxconfig.DrainGranted, time.Hour)
		mustTake(t, s, d)
		if got := drainOf(s); got.Done || got.InFlight != 1 || got.Phase != muxconfig.DrainGranted {
			t.Errorf("with a request in flight the drain is %+v", got)
		}
		before := seqOf(s)
		if err := object.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if got := drainOf(s); !got.Done || got.InFlight != 0 || got.StoreEmpty != nil {
			t.Errorf("without one it is %+v", got)
		}
		if seqOf(s) <= before {
			t.Error("its end is no news")
		}
	})
}

func TestADrainWaitsForTheUploadsThatAreOpenOnTheStore(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m storage.Multipart, id string, part storage.Part){
		"completed": func(t *testing.T, m storage.Multipart, id string, part storage.Part) {
			if _, err := m.CompleteUpload(t.Context(), "key", id, []storage.Part{part}, storage.SetOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"aborted": func(t *testing.T, m storage.Multipart, id string, _ storage.Part) {
			if err := m.AbortUpload(t.Context(), "key", id); err != nil {
				t.Fatal(err)
			}
		},
		"left behind": func(*testing.T, storage.Multipart, string, storage.Part) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			watched(t, func(t *testing.T, s *Server) {
				mustTake(t, s, testDocument(1, "a", "b"))
				front := s.applier.served.Load().mux
				id, err := front.CreateUpload(t.Context(), "key", storage.SetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				d := testDocument(2, "a", "b")
				setDrain(d, muxconfig.DrainGranted, time.Hour)
				mustTake(t, s, d)
				if got := drainOf(s); got.Done || got.OpenUploads != 1 {
					t.Errorf("with an upload open the drain is %+v", got)
				}
				part, err := front.UploadPart(t.Context(), "key", id, 1, storage.Bytes([]byte("x")), storage.SetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				end(t, front, id, part)
				time.Sleep(2 * uploadInterval)
				if got := drainOf(s); !got.Done {
					t.Errorf("afterwards it is %+v", got)
				}
			})
		})
	}
}

func TestADrainEndsAtItsDeadline(t *testing.T) {
	watched(t, func(t *testing.T, s *Server) {
		mustTake(t, s, testDocument(1, "a", "b"))
		set(t, s, "key")
		object, err := s.applier.served.Load().mux.GetStream(t.Context(), "key", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer object.Body.Close()
		d := testDocument(2, "a", "b")
		setDrain(d, muxconfig.DrainGranted, time.Minute)
		mustTake(t, s, d)
		time.Sleep(time.Minute + time.Second)
		if _, err := io.ReadAll(object.Body); err == nil {
			t.Error("the request went on past the deadline")
		}
		_ = object.Body.Close()
		if got := drainOf(s); !got.Done {
			t.Errorf("the drain is %+v", got)
		}
	})
}

func TestAReadOnlyMemberIsDoneAfterTheWritesThatBeganBefore(t *testing.T) {
	watched(t, func(t *testing.T, s *Server) {
		mustTake(t, s, spreadDocument(1, ""))
		r, w := io.Pipe()
		var writing sync.WaitGroup
		front := s.applier.served.Load().generations.list[0]
		writing.Go(func() {
			if _, err := front.SetStream(t.Context(), "slow", storage.Stream(r, -1), storage.SetOptions{}); err != nil {
				t.Errorf("the write that began before failed: %v", err)
			}
		})
		if _, err := w.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		mustTake(t, s, spreadDocument(2, muxconfig.DrainReadOnly))
		mustTake(t, s, spreadDocument(3, muxconfig.DrainReadOnly))
		if got := drainOf(s); got.Done || got.InFlight != 1 || got.StoreEmpty != nil {
			t.Errorf("with a write in flight the drain is %+v", got)
		}
		before := seqOf(s)
		_ = w.Close()
		writing.Wait()
		got := drainOf(s)
		if !got.Done || got.StoreEmpty == nil || *got.StoreEmpty {
			t.Errorf("after it the drain is %+v", got)
		}
		if seqOf(s) <= before {
			t.Error("that it is done is no news")
		}
		set(t, s, "new")
		if m := s.facts().report().Members; m[1].Hits == 0 {
			t.Error("a new write went to the member that takes none")
		}
	})
}

func TestAStoreIsSeenToBecomeEmpty(t *testing.T) {
	watched(t, func(t *testing.T, s *Server) {
		mustTake(t, s, spreadDocument(1, ""))
		set(t, s, "key")
		mustTake(t, s, spreadDocument(2, muxconfig.DrainReadOnly))
		if got := drainOf(s); got.StoreEmpty == nil || *got.StoreEmpty {
			t.Fatalf("a store with an object is %+v", got)
		}
		if err := s.applier.served.Load().mux.Delete(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		before := seqOf(s)
		time.Sleep(listInterval + time.Second)
		if got := drainOf(s); got.StoreEmpty == nil || !*got.StoreEmpty || seqOf(s) <= before {
			t.Errorf("an empty store is %+v, and seq went from %d to %d", got, before, seqOf(s))
		}
		mustTake(t, s, spreadDocument(3, muxconfig.DrainGranted))
		if got := drainOf(s); !got.Done || got.StoreEmpty == nil || !*got.StoreEmpty {
			t.Errorf("once granted it is %+v", got)
		}
		mustTake(t, s, spreadDocument(4, ""))
		if got := s.facts().report().Members[0]; got.Drain != nil || got.State != muxconfig.StateUp {
			t.Errorf("taken back it is %+v", got)
		}
		s.drains.kick()
		synctest.Wait()
		if n := len(s.drains.seen()); n != 0 {
			t.Errorf("%d drains are remembered", n)
		}
	})
}
