package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func TestADocumentIsAppliedAndAcknowledged(t *testing.T) {
	s := newServer(t, nil)
	before, _ := s.hub.since("", 0)
	d := testDocument(3, "a", "b")
	d.Transitions = 2
	mustTake(t, s, d)
	r := s.facts().report()
	want := muxconfig.Applied{Revision: 3, Transitions: 2, Hash: d.Hash}
	if r.Applied == nil || *r.Applied != want || r.Rejection != nil {
		t.Errorf("the report says %+v, %+v", r.Applied, r.Rejection)
	}
	if after, _ := s.hub.since("", 0); after <= before {
		t.Error("the acknowledgement did not advance seq")
	}
	if len(r.Members) != 2 || r.Members[0].Path != "a" || r.Members[1].UID != "uid-b" || r.Members[0].State != muxconfig.StateUp || len(r.Members[0].Capabilities) == 0 {
		t.Errorf("the members are %+v", r.Members)
	}
}

func TestWhatCannotBeAppliedIsRejectedAndTheOldOneServesOn(t *testing.T) {
	good := func() *muxconfig.Document { return testDocument(6, "a", "b") }
	raw := func(change func(*muxconfig.Document)) []byte {
		d := good()
		change(d)
		hash, _ := muxconfig.ContentHash(d)
		d.Hash = hash
		data, _ := json.Marshal(d)
		return data
	}
	tests := []struct {
		name     string
		data     []byte
		revision int64
		why      string
	}{
		{"no JSON", []byte("{"), 0, "decode the document"},
		{"an invalid one", raw(func(d *muxconfig.Document) { d.Muxes[0].Mode = "random" }), 6, "muxes[assets].mode"},
		{"a tampered one", bytes.Replace(raw(func(*muxconfig.Document) {}), []byte(`"assets"`), []byte(`"assetz"`), 1), 6, "hash"},
		{"a certificate that is none", raw(func(d *muxconfig.Document) {
			d.Frontend.TLS = &muxconfig.KeyCert{Cert: "x", Key: "y"}
		}), 6, "frontend.tls: must be a PEM certificate"},
		{"an admin certificate that is none", raw(func(d *muxconfig.Document) { d.Admin.TLS.Key = "y" }), 6, "admin.tls"},
		{"a backend that cannot be opened", raw(func(d *muxconfig.Document) {
			d.Backends[1] = withCredentials(1, "k").Backends[0]
			d.Backends[1].Name, d.Backends[1].UID = "b", "uid-b"
		}), 6, "open backend b: out of luck"},
		{"an older one", raw(func(d *muxconfig.Document) { d.Revision = 4 }), 4, "does not supersede"},
		{"one of an earlier leader", raw(func(d *muxconfig.Document) { d.Transitions = 0; d.Revision = 9 }), 9, "does not supersede"},
		{"another one of the same revision", raw(func(d *muxconfig.Document) { d.Revision = 5; d.Frontend.Bucket = "other" }), 5, "does not supersede"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, func(o *Options) {
				o.open = func(b *muxconfig.Backend) (storage.Storage, error) {
					if b.S3 != nil {
						return nil, errors.New("out of luck")
					}
					return maker{}.open(b)
				}
			})
			served := testDocument(5, "a", "b")
			served.Transitions = 1
			mustTake(t, s, served)
			old := s.applier.served.Load()
			data := tt.data
			if !bytes.Contains(data, []byte(`"revision":9`)) {
				data = bytes.Replace(data, []byte(`"transitions":0`), []byte(`"transitions":1`), 1)
			}
			why := mustRefuse(t, s, Offer{Data: data})
			r := s.facts().report()
			if !strings.Contains(why, tt.why) || r.Rejection.Revision != tt.revision {
				t.Errorf("it was rejected as revision %d with %q", r.Rejection.Revision, why)
			}
			if s.applier.served.Load() != old || r.Applied.Revision != 5 {
				t.Errorf("what is served changed to %+v", r.Applied)
			}
			if _, err := storage.Set(t.Context(), old.mux, "key", []byte("x"), storage.SetOptions{}); err != nil {
				t.Errorf("the old one does not serve: %v", err)
			}
			next := testDocument(10, "a", "b")
			next.Transitions = 1
			mustTake(t, s, next)
			if s.applier.rejection.Load() != nil {
				t.Error("a later document did not clear the rejection")
			}
		})
	}
}

func TestTheSameRejectionIsNoNews(t *testing.T) {
	s := newServer(t, nil)
	mustRefuse(t, s, Offer{Data: []byte("{")})
	first, _ := s.hub.since("", 0)
	mustRefuse(t, s, Offer{Data: []byte("{")})
	if second, _ := s.hub.since("", 0); second != first {
		t.Error("a repeated rejection advanced seq")
	}
}

func TestCopiesThatAreOlderArePassedOver(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, testDocument(5, "a"))
	for _, revision := range []int64{4, 5} {
		offer := encode(t, testDocument(revision, "a"))
		offer.Copy = true
		if s.applier.take(t.Context(), offer) || s.applier.rejection.Load() != nil {
			t.Errorf("the copy of revision %d was not passed over: %+v", revision, s.applier.rejection.Load())
		}
	}
	if s.applier.take(t.Context(), encode(t, testDocument(5, "a"))) || s.applier.rejection.Load() != nil {
		t.Error("what is served already was not passed over")
	}
	// A newer document that was refused stays on record when an older copy is taken.
	fresh := newServer(t, nil)
	mustRefuse(t, fresh, Offer{Data: []byte(`{"schema":1,"revision":7}`)})
	copied := encode(t, testDocument(6, "a"))
	copied.Copy = true
	if !fresh.applier.take(t.Context(), copied) || fresh.applier.rejection.Load() == nil {
		t.Error("an older copy undid the rejection of a newer document")
	}
}

func TestStateAndStoresSurviveADocumentThatKeepsTheirBackend(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, testDocument(1, "a", "b"))
	mux := s.applier.served.Load().mux
	if _, err := storage.Set(t.Context(), mux, "key", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	hits := s.facts().report().Members[0].Hits
	mustTake(t, s, testDocument(2, "a", "c"))
	r := s.facts().report()
	if r.Members[0].Hits != hits || hits == 0 || r.Totals.Calls != 1 {
		t.Errorf("figures did not survive: %+v, %+v", r.Members[0].Figures, r.Totals)
	}
	if data, _, err := storage.Get(t.Context(), mux, "key"); err != nil || string(data) != "x" {
		t.Errorf("the object did not survive: %q, %v", data, err)
	}
	// Another backend of the same name is another one.
	d := testDocument(3, "a", "c")
	d.Backends[0].UID = "uid-new"
	mustTake(t, s, d)
	if r := s.facts().report(); r.Members[0].Hits != 0 || r.Members[0].UID != "uid-new" {
		t.Errorf("a new backend began with %+v", r.Members[0])
	}
	if has, err := storage.Has(t.Context(), mux, "key"); has || err != nil {
		t.Errorf("a new backend holds the old one's object (%v)", err)
	}
}

func TestARootWithoutMembersIsDownAndComesBack(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, testDocument(1, "a"))
	if _, err := storage.Set(t.Context(), s.applier.served.Load().mux, "key", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	empty := testDocument(2)
	empty.Released = []muxconfig.Released{{Name: "a", UID: "uid-a"}}
	mustTake(t, s, empty)
	r := s.facts().report()
	if r.Applied.Revision != 2 || len(r.Members) != 0 || r.Totals.Calls != 1 {
		t.Errorf("the report is %+v", r)
	}
	if _, err := (nothing{}).Stat(t.Context(), "key", storage.StatOptions{}); !errors.Is(err, storage.ErrAllBackendsDown) {
		t.Errorf("it answers %v", err)
	}
	mustTake(t, s, testDocument(3, "b"))
	if r := s.facts().report(); len(r.Members) != 1 || r.Members[0].State != muxconfig.StateUp || r.Totals.Calls != 1 {
		t.Errorf("the report is %+v", r)
	}
}

func TestAStoreInMemoryIsResizedAndKeepsItsObjects(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, testDocument(1, "a"))
	mux := s.applier.served.Load().mux
	if _, err := storage.Set(t.Context(), mux, "key", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	smaller := testDocument(2, "a")
	smaller.Backends[0].Memory.SizeLimit = 1
	mustTake(t, s, smaller)
	if _, err := storage.Set(t.Context(), mux, "more", []byte("x"), storage.SetOptions{}); err == nil {
		t.Error("the new limit is not in force")
	}
	if has, err := storage.Has(t.Context(), mux, "key"); !has || err != nil {
		t.Errorf("the object is gone (%v)", err)
	}
}

// credentialStores opens stores over one set of objects. While there is a
// failure, only the accepted credentials do not meet it.
type credentialStores struct {
	objects  *memory.Storage
	accepted atomic.Value
	failure  atomic.Pointer[storage.Error]

	mu     sync.Mutex
	opened []*checkedStore
}

func (c *credentialStores) open(b *muxconfig.Backend) (storage.Storage, error) {
	key := b.S3.Auth.AccessKeyID
	s := &checkedStore{Storage: c.objects.Handle(), closed: make(chan struct{}), check: func() error {
		if failure := c.failure.Load(); failure != nil && c.accepted.Load() != key {
			return failure
		}
		return nil
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = append(c.opened, s)
	return s, nil
}

func (c *credentialStores) isClosed(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.opened[i].closed:
		return true
	default:
		return false
	}
}

func withCredentials(revision int64, key string) *muxconfig.Document {
	d := testDocument(revision, "a")
	d.Backends[0].Memory, d.Backends[0].S3 = nil, &muxconfig.S3{
		Bucket: "assets", AddressingStyle: muxconfig.AddressingPath,
		Auth: muxconfig.S3Auth{Type: muxconfig.AuthSecret, AccessKeyID: key, SecretAccessKey: "secret of " + muxconfig.Secret(key)},
	}
	return d
}

func TestRefusedCredentialsLeaveTheOldOnesInUseAndAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := &credentialStores{objects: memory.New(1 << 20)}
		s := newServer(t, func(o *Options) { o.open = stores.open })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.applier.run(ctx) })
		mustTake(t, s, withCredentials(1, "old"))

		stores.failure.Store(storage.Errorf(storage.CodeAccessDenied, "Check", "no"))
		mustTake(t, s, withCredentials(2, "new"))
		member := s.facts().report().Members[0]
		if member.Refused == nil || member.Refused.Code != string(storage.CodeAccessDenied) {
			t.Fatalf("the refusal is reported as %+v", member.Refused)
		}
		if stores.isClosed(0) || !stores.isClosed(1) {
			t.Error("not the new client was let go")
		}
		time.Sleep(2 * refusedInterval)
		if stores.isClosed(0) {
			t.Error("the old client was let go while the new credentials are refused")
		}
		stores.accepted.Store("new")
		time.Sleep(2 * refusedInterval)
		synctest.Wait()
		if member := s.facts().report().Members[0]; member.Refused != nil || !stores.isClosed(0) {
			t.Errorf("once accepted the new credentials are not in use: %+v", member.Refused)
		}
		cancel()
		running.Wait()
	})
}

func TestCredentialsThatCannotBeTriedAreTaken(t *testing.T) {
	stores := &credentialStores{objects: memory.New(1 << 20)}
	s := newServer(t, func(o *Options) { o.open = stores.open })
	mustTake(t, s, withCredentials(1, "old"))
	stores.failure.Store(storage.Errorf(storage.CodeUnavailable, "Check", "nobody there"))
	mustTake(t, s, withCredentials(2, "new"))
	s.applier.closing.Wait()
	if s.facts().report().Members[0].Refused != nil || !stores.isClosed(0) {
		t.Error("a store that is away kept the old client")
	}
}
