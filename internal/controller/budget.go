package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// figureBudget decides when a status may be written although only figures
// moved: at most once per interval for each object, and within one rate for all
// of them together, first come first served.
type figureBudget struct {
	interval time.Duration

	mu      sync.Mutex
	limiter *rate.Limiter
	objects map[objectKey]*figureTurn
}

// objectKey names an object of one of the two kinds.
type objectKey struct {
	kind string
	types.NamespacedName
}

type figureTurn struct {
	written time.Time
	// turn is when the object's place in the queue comes up; zero without a
	// place.
	turn  time.Time
	place *rate.Reservation
}

func newFigureBudget(interval time.Duration, perSecond float64) *figureBudget {
	return &figureBudget{
		interval: interval,
		limiter:  rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond))),
		objects:  map[objectKey]*figureTurn{},
	}
}

// take returns zero if the figures of key may be written now, and otherwise
// after how long to ask again. Who asks keeps its place until then.
func (b *figureBudget) take(key objectKey, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.object(key)
	if left := b.interval - now.Sub(t.written); left > 0 {
		return left
	}
	if t.turn.IsZero() {
		t.place = b.limiter.ReserveN(now, 1)
		t.turn = now.Add(t.place.DelayFrom(now))
	}
	if left := t.turn.Sub(now); left > 0 {
		return left
	}
	*t = figureTurn{written: now}
	return 0
}

// wrote notes that the status of key was written for another reason, which took
// the figures along.
func (b *figureBudget) wrote(key objectKey, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.object(key)
	if t.place != nil {
		t.place.CancelAt(now)
	}
	*t = figureTurn{written: now}
}

// due is how long the figures of key have to wait at least.
func (b *figureBudget) due(key objectKey, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.objects[key]; t != nil {
		return max(0, b.interval-now.Sub(t.written))
	}
	return 0
}

func (b *figureBudget) forget(key objectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, key)
}

// object is called with b.mu held.
func (b *figureBudget) object(key objectKey) *figureTurn {
	t := b.objects[key]
	if t == nil {
		t = &figureTurn{}
		b.objects[key] = t
	}
	return t
}
