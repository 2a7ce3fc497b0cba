package muxengine

// bitset is a set of indexes of members.
type bitset [MaxMembers / 64]uint64

func (b *bitset) has(i uint8) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b *bitset) add(i uint8)      { b[i/64] |= 1 << (i % 64) }

// set are the members that may be chosen, by their index, in configured order.
// It is immutable.
type set struct {
	index []uint8
	// alias draws positions in index; only mode weighted has it.
	alias *aliasTable
}

func newSet(m *mode, members []*member, index []uint8) set {
	s := set{index: index}
	if m.weighs && len(index) > 0 {
		weights := make([]int, len(index))
		for at, i := range index {
			weights[at] = members[i].weight
		}
		s.alias = newAliasTable(weights)
	}
	return s
}

// pick is the choice of one request. It allocates nothing and locks nothing.
type pick struct {
	node *node
	req  *request
	set  set

	tries int
	draws int
	tried bitset
	turn  uint64
	begun bool
}

// turnOf returns the request's number in the mux's round.
func (p *pick) turnOf() uint64 {
	if !p.begun {
		p.begun = true
		p.turn = p.node.core.turns.Add(1) - 1
	}
	return p.turn
}

// choose returns the index of the next member to try.
func (p *pick) choose() (uint8, bool) {
	for p.tries < len(p.set.index) {
		i := p.set.index[p.node.mode.next(p)]
		p.tries++
		if !p.tried.has(i) {
			p.tried.add(i)
			return i, true
		}
	}
	return 0, false
}
