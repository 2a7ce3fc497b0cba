package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// faults are what happens to one member at a time. 300 KiB are more than the
// front reads ahead, than a socket buffers and than a part of any of them.
var faults = []fault{
	{name: "refuse", refuse: true, mute: true},
	{name: "reset before the head of the request", mute: true, toxic: `{"name":"t","type":"reset_peer","stream":"upstream","attributes":{"timeout":0}}`},
	{name: "reset before the head of the answer", mute: true, toxic: `{"name":"t","type":"reset_peer","stream":"downstream","attributes":{"timeout":0}}`},
	{name: "cut after the head of the answer", spoil: &spoil{breakAt: 1}},
	{name: "cut in the body of the answer", spoil: &spoil{breakAt: 150 << 10}},
	{name: "cut in the body of the request", toxic: `{"name":"t","type":"limit_data","stream":"upstream","attributes":{"bytes":150000}}`},
	{name: "truncate the answer", toxic: `{"name":"t","type":"limit_data","stream":"downstream","attributes":{"bytes":100000}}`},
	{name: "stall the answer", mute: true, toxic: `{"name":"t","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`},
	{name: "stall the request", mute: true, toxic: `{"name":"t","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`},
	{name: "1 KiB/s", toxic: `{"name":"t","type":"bandwidth","stream":"downstream","attributes":{"rate":1}}`},
	{name: "500", mute: true, spoil: &spoil{status: http.StatusInternalServerError}},
	{name: "503 with Retry-After", mute: true, spoil: &spoil{status: http.StatusServiceUnavailable, retryAfter: "1"}},
	{name: "429", mute: true, spoil: &spoil{status: http.StatusTooManyRequests}},
	{name: "a byte of the answer is another", spoil: &spoil{flip: 100 << 10}},
}

// TestNoFaultOfAMemberMakesABodyWrong reads and writes through a whole proxy
// while one member fails in each way that a store and what lies before it can.
func TestNoFaultOfAMemberMakesABodyWrong(t *testing.T) {
	server := servers.Versitygw(t)
	for _, mode := range []string{
		muxconfig.ModeFailover, muxconfig.ModeRoundRobin, muxconfig.ModeWeighted,
		muxconfig.ModeStickyByKey, muxconfig.ModeShield, muxconfig.ModeMirror,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newFaultyWorld(t, server, mode, muxconfig.KeyspaceReplicated)
			for i := range faults {
				for victim := range w.stores {
					w.endure(t, faults[i], victim)
				}
			}
			// The other member serves on: most bodies come whole.
			if all := len(faults) * len(w.stores) * stableKeys * rounds; w.served < all/2 {
				t.Errorf("of %d reads %d brought the object", all, w.served)
			}
		})
	}
}

const (
	stableKeys = 4
	largeBytes = 300 << 10
	smallBytes = 2 << 10
	// rounds is how often each reader and writer comes in one fault.
	rounds = 2
)

// faultyWorld is a proxy over two stores that can fail.
type faultyWorld struct {
	*running
	mode, keyspace string
	stores         []*faultyStore
	client         *http.Client

	mu sync.Mutex
	// tried are all contents that were sent for a key, and done how many had
	// been when one was last answered 200.
	tried map[string][][]byte
	done  map[string]int
	// served counts bodies of stable keys that came whole.
	served int
}

func newFaultyWorld(t *testing.T, server *servers.S3, mode, keyspace string) *faultyWorld {
	t.Helper()
	w := &faultyWorld{mode: mode, keyspace: keyspace, tried: map[string][][]byte{}, done: map[string]int{}}
	d := testDocument(1)
	mux := &d.Muxes[0]
	mux.Mode, mux.Keyspace = mode, keyspace
	mux.BackendTimeout = muxconfig.Duration(400 * time.Millisecond)
	mux.Health.Cooldown, mux.Health.MaxCooldown = muxconfig.Duration(100*time.Millisecond), muxconfig.Duration(300*time.Millisecond)
	for _, name := range []string{"a", "b"} {
		store := newFaultyStore(t, server)
		w.stores = append(w.stores, store)
		member := muxconfig.Member{Name: name, Backend: name}
		if mode == muxconfig.ModeWeighted {
			weight := int32(1)
			member.Weight = &weight
		}
		mux.Members = append(mux.Members, member)
		d.Backends = append(d.Backends, store.backend(name, server))
	}
	w.running = start(t, d, func(o *Options) { o.Spool.Memory = 64 << 20 })
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	for i := range stableKeys {
		key := stableKey(i)
		for at, store := range w.stores {
			if w.holds(at, i) {
				store.put(t, key, stableContent(i))
			}
		}
	}
	return w
}

// holds reports whether that store holds the stable key i: in keyspace spread
// each is on one.
func (w *faultyWorld) holds(store, i int) bool {
	return w.keyspace == muxconfig.KeyspaceReplicated || store == i/2
}

func stableKey(i int) string { return fmt.Sprintf("stable-%d", i) }

func stableContent(i int) []byte {
	return pseudoContent(stableKey(i), []int{largeBytes, smallBytes}[i%2])
}

// pseudoContent is a content that belongs to its name and no other.
func pseudoContent(name string, size int) []byte {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	random := rand.New(rand.NewPCG(h.Sum64(), uint64(size)))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func crc32c(data []byte) []byte {
	return binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// endure reads and writes while the victim fails, and looks afterwards what the
// stores hold.
func (w *faultyWorld) endure(t *testing.T, one fault, victim int) {
	t.Helper()
	name := fmt.Sprintf("%s at %c", one.name, 'a'+victim)
	w.settle(t, name)
	spread := w.keyspace == muxconfig.KeyspaceSpread
	if spread {
		w.placeDoomed(t)
	}
	w.stores[victim].begin(t, one)
	var clients sync.WaitGroup
	for i := range stableKeys {
		clients.Go(func() {
			for round := range rounds {
				// No checksum tells anything of a part.
				flips := one.spoil != nil && one.spoil.flip > 0
				w.readStable(t, name, i, round%2 == 1 && !flips)
			}
		})
	}
	for i := range 3 {
		key := fmt.Sprintf("written-%d", i)
		clients.Go(func() {
			for round := range rounds {
				w.write(t, name, key, fmt.Sprintf("%s %s %d", key, name, round), []int{largeBytes, smallBytes}[(i+round)%2])
				w.readWritten(t, name, key)
			}
		})
	}
	if one.mute {
		clients.Go(func() { w.goOn(t, name, victim) })
	}
	var deleted bool
	if spread {
		clients.Go(func() { w.askForWhatIsNot(t, name, one) })
		clients.Go(func() { w.listStable(t, name, one) })
		clients.Go(func() { deleted = w.deleteDoomed(t, name, one) })
	}
	clients.Wait()
	w.stores[victim].end(t)
	w.look(t, name)
	if deleted {
		w.mustBeGone(t, name)
	}
}

// settle waits until both members are up.
func (w *faultyWorld) settle(t *testing.T, name string) {
	t.Helper()
	waitFor(t, "both members to be up before "+name, func() bool {
		_, _, _ = w.get(t.Context(), stableKey(1), "")
		_, _, _ = w.get(t.Context(), missingKey, "")                                    // in keyspace spread each member is asked for it
		_, _, _ = w.send(t.Context(), http.MethodPut, "settled", []byte("trial write")) // for a member that took bodies too slowly
		for _, m := range w.applier.served.Load().mux.Stats().Members {
			if m.State != muxengine.StateUp || m.WritesDown {
				return false
			}
		}
		return true
	})
}

// get returns the answer's status and its body, or why that is not whole.
func (w *faultyWorld) get(ctx context.Context, key, part string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url("s3", "/assets/"+key), nil)
	if err != nil {
		return 0, nil, err
	}
	if part != "" {
		r.Header.Set("Range", part)
	}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

func (w *faultyWorld) readStable(t *testing.T, name string, i int, ranged bool) {
	want, part, success := stableContent(i), "", http.StatusOK
	if ranged {
		want, part, success = want[100:], "bytes=100-", http.StatusPartialContent
	}
	status, body, err := w.get(t.Context(), stableKey(i), part)
	switch {
	case err != nil:
	case status == success && bytes.Equal(body, want):
		w.mu.Lock()
		w.served++
		w.mu.Unlock()
	case status == success:
		t.Errorf("%s: %s: %d bytes of %d with status %d, and they are not the object's", name, stableKey(i), len(body), len(want), status)
	case status < http.StatusInternalServerError:
		t.Errorf("%s: %s: status %d: %s", name, stableKey(i), status, body)
	}
}

func (w *faultyWorld) readWritten(t *testing.T, name, key string) {
	status, body, err := w.get(t.Context(), key, "")
	if err != nil || status != http.StatusOK {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.tried[key], func(sent []byte) bool { return bytes.Equal(sent, body) }) {
		t.Errorf("%s: %s: %d bytes with status 200 that nobody has sent", name, key, len(body))
	}
}

func (w *faultyWorld) write(t *testing.T, name, key, content string, size int) {
	data := pseudoContent(content, size)
	w.mu.Lock()
	w.tried[key] = append(w.tried[key], data)
	count := len(w.tried[key])
	w.mu.Unlock()
	response, text, err := w.send(t.Context(), http.MethodPut, key, data)
	switch {
	case err != nil:
	case response.StatusCode == http.StatusOK:
		w.mu.Lock()
		w.done[key] = count
		w.mu.Unlock()
	case response.StatusCode < http.StatusInternalServerError:
		t.Errorf("%s: PUT %s: status %d: %s", name, key, response.StatusCode, text)
	}
}

// send makes a request that a body may belong to, and reads the whole answer.
func (w *faultyWorld) send(ctx context.Context, method, path string, body []byte) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url("s3", "/assets/"+path), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if body != nil {
		r.Header.Set("X-Amz-Checksum-Crc32c", base64.StdEncoding.EncodeToString(crc32c(body)))
	}
	response, err := w.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response, text, err
}

// goOn wants what goes on while the victim answers nothing: every key that the
// other member holds can be read, and a write is taken or, by a shield without
// its origin, refused with 503.
func (w *faultyWorld) goOn(t *testing.T, name string, victim int) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for i := range stableKeys {
		for w.holds(1-victim, i) {
			status, body, err := w.get(ctx, stableKey(i), "")
			if err == nil && status == http.StatusOK && bytes.Equal(body, stableContent(i)) {
				break
			}
			if ctx.Err() != nil {
				t.Errorf("%s: %s cannot be read, though another member holds it: status %d, %v", name, stableKey(i), status, err)
				return
			}
		}
	}
	data := pseudoContent(name, smallBytes)
	for {
		response, text, err := w.send(ctx, http.MethodPut, "goes-on", data)
		refused := w.mode == muxconfig.ModeShield && victim == 0
		switch {
		case err == nil && refused:
			if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
				t.Errorf("%s: PUT without the origin: status %d: %s", name, response.StatusCode, text)
			}
			return
		case err == nil && response.StatusCode == http.StatusOK:
			return
		case ctx.Err() != nil:
			t.Errorf("%s: no write is taken: %v, %s", name, err, text)
			return
		}
	}
}

// look compares what the stores hold: each object is one that was sent, whole,
// and the last one that was answered with success, or one sent after it, is on
// some store; of a shield on its origin.
func (w *faultyWorld) look(t *testing.T, name string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, tried := range w.tried {
		held := -1
		for i, store := range w.stores {
			got, _, err := storage.Get(t.Context(), store.direct, key)
			if errors.Is(err, storage.ErrKeyNotFound) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			at := slices.IndexFunc(tried, func(sent []byte) bool { return bytes.Equal(sent, got) })
			if at < 0 {
				t.Errorf("%s: store %d holds %d bytes under %s that nobody has sent", name, i, len(got), key)
			}
			if w.mode != muxconfig.ModeShield || i == 0 {
				held = max(held, at)
			}
		}
		if held < w.done[key]-1 {
			t.Errorf("%s: %s: write %d was answered 200, and the stores hold write %d", name, key, w.done[key], held+1)
		}
	}
}
