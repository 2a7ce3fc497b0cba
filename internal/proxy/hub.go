package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// hub counts what happens in the proxy, keeps the last events, and wakes those
// who wait for a change.
type hub struct {
	bootID string

	mu     sync.Mutex
	seq    uint64 // of the last thing that happened
	change uint64 // seq of the last one that is worth an answer
	ring   []muxconfig.Event
	next   int           // where ring is written next, once it is full
	woken  chan struct{} // closed and replaced at each change
	closed bool
	quiet  map[quietKey]*quietEvents
}

// quietInterval is the least time between two events about requests (failover,
// fanout-partial) of one member: they come with requests, the others with
// changes of state.
const quietInterval = time.Second

// maxQuiet bounds what is remembered to limit their rate.
const maxQuiet = 2 * muxconfig.MaxMembers

type quietKey struct{ topic, path string }

type quietEvents struct {
	last    time.Time
	skipped int
}

func newHub() *hub {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // never fails
	return &hub{bootID: hex.EncodeToString(raw), woken: make(chan struct{}), quiet: map[quietKey]*quietEvents{}}
}

// changed answers everyone who waits: something other than figures changed.
func (h *hub) changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.advance()
	h.wake()
}

// stateEvent records an event that is a change of state.
func (h *hub) stateEvent(e muxconfig.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.record(e)
	h.wake()
}

// requestEvent records an event that a request caused. It goes with the next
// report, and is left out where one like it was recorded a moment before; the
// next one says how many were.
func (h *hub) requestEvent(e muxconfig.Event) (recorded bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := quietKey{e.Topic, e.Path}
	q := h.quiet[key]
	if q == nil {
		if len(h.quiet) >= maxQuiet {
			clear(h.quiet)
		}
		q = &quietEvents{}
		h.quiet[key] = q
	}
	if !q.last.IsZero() && e.Time.Sub(q.last) < quietInterval {
		q.skipped++
		return false
	}
	if q.skipped > 0 {
		e.Message += fmt.Sprintf(" (and %d more like it)", q.skipped)
	}
	q.last, q.skipped = e.Time, 0
	h.record(e)
	return true
}

func (h *hub) advance() { h.seq++ }

func (h *hub) wake() {
	h.change = h.seq
	if !h.closed {
		close(h.woken)
		h.woken = make(chan struct{})
	}
}

func (h *hub) record(e muxconfig.Event) {
	h.advance()
	e.Seq = h.seq
	if len(h.ring) < muxconfig.MaxReportEvents {
		h.ring = append(h.ring, e)
		return
	}
	h.ring[h.next] = e
	h.next = (h.next + 1) % len(h.ring)
}

// news says what has happened since the cursor: whether that is worth an
// answer, and else when to look again.
func (h *hub) news(bootID string, seq uint64) (answer bool, woken <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed || bootID != h.bootID || seq > h.seq || seq < h.change, h.woken
}

// since returns the newest seq and the events after the cursor that the ring
// still holds.
func (h *hub) since(bootID string, seq uint64) (uint64, []muxconfig.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bootID != h.bootID || seq > h.seq {
		seq = 0
	}
	var events []muxconfig.Event
	for i := range h.ring {
		if e := h.ring[(h.next+i)%len(h.ring)]; e.Seq > seq {
			events = append(events, e)
		}
	}
	return h.seq, events
}

// close answers everyone who waits, and from now on at once.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.woken)
	}
}
