package azure

import "sync"

// listing is what markers belong to.
type listing struct{ prefix, delimiter string }

// place is where the service has stopped in a listing: it goes on from marker
// with what follows last.
type place struct {
	listing
	last, marker string
}

// maxMarkers bounds the places that are remembered; the oldest are forgotten.
const maxMarkers = 512

// markers remembers where listings have stopped.
type markers struct {
	mu     sync.Mutex
	places []place
	oldest int
}

// before returns the latest place in l that is not after the given entry, and
// the entry that it follows. Both are empty if there is none.
func (m *markers) before(l listing, after string) (marker, last string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.places {
		if p.listing == l && p.last <= after && p.last >= last {
			marker, last = p.marker, p.last
		}
	}
	return marker, last
}

func (m *markers) keep(l listing, last, marker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := place{l, last, marker}
	for i := range m.places {
		if m.places[i].listing == l && m.places[i].last == last {
			m.places[i] = p
			return
		}
	}
	if len(m.places) < maxMarkers {
		m.places = append(m.places, p)
		return
	}
	m.places[m.oldest] = p
	m.oldest = (m.oldest + 1) % maxMarkers
}
