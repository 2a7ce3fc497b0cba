package muxengine

import "math/bits"

// aliasTable draws an index with a given probability in constant time (Walker's
// alias method, built as Vose does). It is immutable.
type aliasTable struct {
	// keep is the probability of staying at a slot, in units of 2^-32;
	// other is where a draw goes that does not stay.
	keep  []uint64
	other []uint8
}

const aliasOne = 1 << 32

// newAliasTable builds a table for weights, of which at least one is positive.
func newAliasTable(weights []int) *aliasTable {
	n := len(weights)
	t := &aliasTable{keep: make([]uint64, n), other: make([]uint8, n)}
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	scaled := make([]float64, n)
	var small, large []int
	for i, w := range weights {
		scaled[i] = float64(w) * float64(n) / total
		if scaled[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		t.keep[s], t.other[s] = uint64(scaled[s]*aliasOne), uint8(l)
		scaled[l] -= 1 - scaled[s]
		if scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, rest := range [][]int{small, large} {
		for _, i := range rest {
			t.keep[i] = aliasOne
		}
	}
	return t
}

// draw turns 64 random bits into an index: the high half of a multiplication
// picks the slot, and bits independent of it throw the coin.
func (t *aliasTable) draw(random uint64) int {
	slot, rest := bits.Mul64(random, uint64(len(t.keep)))
	if rest>>32 < t.keep[slot] {
		return int(slot)
	}
	return int(t.other[slot])
}
