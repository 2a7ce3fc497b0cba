package controller

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownWrites knows which version of an object this process wrote last, so that a
// pass over an older one, which could only end in a conflict, is put off until
// the cache has caught up.
type ownWrites struct {
	mu      sync.Mutex
	written map[objectKey]ownWrite
}

type ownWrite struct {
	version uint64
	at      time.Time
}

const (
	// cacheCatchUp is after how long to look again.
	cacheCatchUp = 10 * time.Millisecond
	// cachePatience is for how long a cache may lag behind before a pass is
	// made with what it has.
	cachePatience = 5 * time.Second
)

// wrote notes the version that a write came back with.
func (o *ownWrites) wrote(key objectKey, object metav1.Object, now time.Time) {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return // versions of this API server cannot be compared
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written == nil {
		o.written = map[objectKey]ownWrite{}
	}
	o.written[key] = ownWrite{version, now}
}

// ahead reports whether this process lately wrote a newer version than cached.
func (o *ownWrites) ahead(key objectKey, cached metav1.Object, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	write, ok := o.written[key]
	if !ok {
		return false
	}
	version, err := strconv.ParseUint(cached.GetResourceVersion(), 10, 64)
	if err == nil && version < write.version && now.Sub(write.at) < cachePatience {
		return true
	}
	delete(o.written, key)
	return false
}

func (o *ownWrites) forget(key objectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.written, key)
}
