package configsource

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy"
)

// apiServer serves one Secret, its list and its watch, as a kube-apiserver
// does for a role that names it.
type apiServer struct {
	t *testing.T
	*httptest.Server

	mu       sync.Mutex
	content  string // of the Secret; "" is no Secret
	version  int
	down     bool
	changed  chan struct{}
	requests []string
	ended    chan struct{} // closed to end all watches
}

func newAPIServer(t *testing.T, content string) *apiServer {
	a := &apiServer{t: t, content: content, version: 1, changed: make(chan struct{}), ended: make(chan struct{})}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	t.Cleanup(a.endWatches)
	return a
}

func (a *apiServer) client() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: a.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

func (a *apiServer) change(content string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.content = content
	a.version++
	close(a.changed)
	a.changed = make(chan struct{})
}

// setDown makes the server answer 503, or end doing so.
func (a *apiServer) setDown(down bool) {
	a.mu.Lock()
	a.down = down
	a.mu.Unlock()
	a.endWatches()
}

func (a *apiServer) endWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.ended)
	a.ended = make(chan struct{})
}

func (a *apiServer) count(kind string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, one := range a.requests {
		if one == kind {
			n++
		}
	}
	return n
}

func (a *apiServer) state() (secret *corev1.Secret, version int, down bool, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.content != "" {
		secret = &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: "shop", ResourceVersion: fmt.Sprint(a.version)},
			Data:       map[string][]byte{muxconfig.SecretKey: []byte(a.content)},
		}
	}
	return secret, a.version, a.down, a.changed
}

func (a *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	kind := "list"
	if query.Get("watch") != "" {
		kind = "watch"
	}
	a.mu.Lock()
	a.requests = append(a.requests, kind)
	ended := a.ended // by what ends it once it was counted
	a.mu.Unlock()
	secret, version, down, _ := a.state()
	if r.URL.Path != "/api/v1/namespaces/shop/secrets" || query.Get("fieldSelector") != "metadata.name=config" {
		a.t.Errorf("the role does not allow %s", r.URL)
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	if down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if kind == "watch" {
		a.watch(w, r, query.Get("resourceVersion"), ended)
		return
	}
	list := corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	list.ResourceVersion = fmt.Sprint(version)
	if secret != nil {
		list.Items = []corev1.Secret{*secret}
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, from string, ended <-chan struct{}) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		secret, version, _, changed := a.state()
		if fmt.Sprint(version) != from && secret != nil {
			from = fmt.Sprint(version)
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": secret})
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-changed:
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// taker takes what is offered, but for documents that begin with "bad".
type taker struct {
	mu      sync.Mutex
	offered []string
	served  string
}

func (k *taker) take(_ context.Context, o proxy.Offer) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := string(o.Data)
	if o.Copy {
		text += " (copy)"
	}
	k.offered = append(k.offered, text)
	if len(o.Data) < 3 || string(o.Data[:3]) == "bad" || string(o.Data) <= k.served {
		return false
	}
	k.served = string(o.Data)
	return true
}

func (k *taker) offers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.offered)
}

type fixture struct {
	opts  Options
	taker *taker
}

func newFixture(t *testing.T, client kubernetes.Interface) *fixture {
	return &fixture{Options{
		Client: client, Log: slog.New(slog.DiscardHandler), Namespace: "shop", Name: "config",
		MountPath: t.TempDir(), StateDir: t.TempDir(),
	}, &taker{}}
}

// run follows until the test ends.
func (f *fixture) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(f.opts).Run(ctx, f.taker.take) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func (f *fixture) write(t *testing.T, dir, content string) {
	t.Helper()
	// In one step, as the kubelet does it.
	path := filepath.Join(dir, muxconfig.SecretKey)
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) saved() string {
	data, _ := os.ReadFile(filepath.Join(f.opts.StateDir, muxconfig.SecretKey))
	return string(data)
}

func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (f *fixture) expect(t *testing.T, offers ...string) {
	t.Helper()
	eventually(t, fmt.Sprint(offers), func() bool { return len(f.taker.offers()) >= len(offers) })
	if got := f.taker.offers(); !slices.Equal(got, offers) {
		t.Fatalf("it offered %q, want %q", got, offers)
	}
}

func TestTheLiveSecretIsReadFollowedAndSaved(t *testing.T) {
	a := newAPIServer(t, "doc1")
	f := newFixture(t, a.client())
	f.write(t, f.opts.MountPath, "doc0")
	f.run(t)
	f.expect(t, "doc1")
	eventually(t, "the watch", func() bool { return a.count("watch") == 1 })
	a.change("doc2")
	f.expect(t, "doc1", "doc2")
	eventually(t, "the saved copy", func() bool { return f.saved() == "doc2" })
	if a.count("list") != 1 {
		t.Errorf("a change was found by %d lists", a.count("list"))
	}
	if info, err := os.Stat(filepath.Join(f.opts.StateDir, muxconfig.SecretKey)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the saved copy is %v, %v", info, err)
	}
}

func TestAWatchThatEndsIsBegunAgainAndNothingIsMissed(t *testing.T) {
	a := newAPIServer(t, "doc1")
	f := newFixture(t, a.client())
	f.run(t)
	eventually(t, "the watch", func() bool { return a.count("watch") == 1 })
	a.endWatches()
	eventually(t, "a second watch", func() bool { return a.count("watch") == 2 })
	a.change("doc2")
	eventually(t, "the change", func() bool { return slices.Contains(f.taker.offers(), "doc2") })
}

func TestASecretThatComesLaterIsFound(t *testing.T) {
	a := newAPIServer(t, "")
	f := newFixture(t, a.client())
	f.run(t)
	eventually(t, "the watch", func() bool { return a.count("watch") == 1 })
	a.change("doc1")
	f.expect(t, "doc1")
}

func TestWithoutAnAPIServerTheCopiesServeUntilItIsBack(t *testing.T) {
	a := newAPIServer(t, "doc5")
	a.setDown(true)
	f := newFixture(t, a.client())
	f.write(t, f.opts.MountPath, "doc2")
	f.write(t, f.opts.StateDir, "doc3")
	f.run(t)
	f.expect(t, "doc2 (copy)", "doc3 (copy)")
	f.write(t, f.opts.MountPath, "doc4")
	f.expect(t, "doc2 (copy)", "doc3 (copy)", "doc4 (copy)")
	eventually(t, "the saved copy", func() bool { return f.saved() == "doc4" })
	a.setDown(false)
	f.expect(t, "doc2 (copy)", "doc3 (copy)", "doc4 (copy)", "doc5")
}

func TestALiveDocumentThatIsRefusedLeavesTheSavedOne(t *testing.T) {
	a := newAPIServer(t, "bad7")
	f := newFixture(t, a.client())
	f.write(t, f.opts.StateDir, "doc3")
	f.run(t)
	f.expect(t, "bad7", "doc3 (copy)")
	eventually(t, "the watch", func() bool { return a.count("watch") == 1 })
	a.change("doc8")
	f.expect(t, "bad7", "doc3 (copy)", "doc8")
	eventually(t, "the saved copy", func() bool { return f.saved() == "doc8" })
}

func TestAStateFolderThatCannotBeWrittenStopsNothing(t *testing.T) {
	a := newAPIServer(t, "doc1")
	f := newFixture(t, a.client())
	f.opts.StateDir = filepath.Join(f.opts.StateDir, "missing")
	f.run(t)
	f.expect(t, "doc1")
}

func TestBackoffIsBounded(t *testing.T) {
	for attempt := range 100 {
		if d := backoff(attempt); d < minBackoff/2 || d > maxBackoff {
			t.Errorf("attempt %d waits %s", attempt, d)
		}
	}
}
