package proxy

import (
	"context"
	"encoding/base64"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/storage"
)

// admin is made once: making certificates is slow under the race detector.
var admin = sync.OnceValue(func() muxconfig.Admin {
	a, err := muxconfig.NewAdmin(time.Now())
	if err != nil {
		panic(err)
	}
	return a
})

// testDocument is a failover mux over memory stores of those names, without
// signatures.
func testDocument(revision int64, backends ...string) *muxconfig.Document {
	d := &muxconfig.Document{
		Schema:   muxconfig.SchemaVersion,
		Revision: revision,
		Owner:    muxconfig.Owner{Namespace: "shop", Name: "assets", UID: "mux-1"},
		Frontend: muxconfig.Frontend{Bucket: "assets", Auth: muxconfig.FrontendNone},
		Admin:    admin(),
		Keys:     muxconfig.Keys{Current: muxconfig.Secret(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))},
		Root:     "assets",
		Muxes: []muxconfig.Mux{{
			Name: "assets", UID: "mux-1", Mode: muxconfig.ModeFailover, Keyspace: muxconfig.KeyspaceReplicated,
			BackendTimeout: muxconfig.Duration(5 * time.Second),
			Retry:          muxconfig.Retry{MaxAttempts: 1},
			Health: muxconfig.Health{
				Cooldown: muxconfig.Duration(time.Second), MaxCooldown: muxconfig.Duration(time.Minute), WhenAllDown: muxconfig.AllDownTry,
			},
		}},
	}
	for _, name := range backends {
		d.Muxes[0].Members = append(d.Muxes[0].Members, muxconfig.Member{Name: name, Backend: name})
		d.Backends = append(d.Backends, muxconfig.Backend{
			Name: name, UID: "uid-" + name, Memory: &muxconfig.Memory{SizeLimit: 64 << 20}, MaxInFlight: 512,
		})
	}
	return d
}

func encode(t testing.TB, d *muxconfig.Document) Offer {
	t.Helper()
	data, err := muxconfig.Encode(d)
	if err != nil {
		t.Fatalf("encode the document: %v", err)
	}
	return Offer{Data: data}
}

// newServer is a Server that listens nowhere.
func newServer(t testing.TB, change func(*Options)) *Server {
	t.Helper()
	opts := Options{
		Log: slog.New(slog.NewTextHandler(testLog{t}, nil)), Spool: spool.Options{Memory: 1 << 20},
		S3Address: "127.0.0.1:0", AdminAddress: "127.0.0.1:0", HealthAddress: "127.0.0.1:0",
		DrainTimeout: 5 * time.Second,
	}
	if change != nil {
		change(&opts)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.applier.close)
	return s
}

// testLog writes to the test's own log as long as that takes anything.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}

func mustTake(t testing.TB, s *Server, d *muxconfig.Document) {
	t.Helper()
	if !s.applier.take(t.Context(), encode(t, d)) {
		t.Fatalf("revision %d was not taken: %+v", d.Revision, s.applier.rejection.Load())
	}
}

// mustRefuse returns why the document was refused.
func mustRefuse(t testing.TB, s *Server, o Offer) string {
	t.Helper()
	if s.applier.take(t.Context(), o) {
		t.Fatal("the document was taken")
	}
	r := s.applier.rejection.Load()
	if r == nil {
		t.Fatal("there is no rejection")
	}
	return r.Message
}

// channelSource offers what it is sent.
type channelSource chan Offer

func (c channelSource) Run(ctx context.Context, take func(context.Context, Offer) bool) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-c:
			take(ctx, o)
		}
	}
}

// checkedStore is a store that says what it thinks of its credentials.
type checkedStore struct {
	storage.Storage
	check  func() error
	closed chan struct{}
}

func (c *checkedStore) Check(context.Context) error { return c.check() }

func (c *checkedStore) Close() error {
	close(c.closed)
	return nil
}
