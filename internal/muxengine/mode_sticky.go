package muxengine

import "github.com/cespare/xxhash/v2"

// stickyByKey begins at the member that the key's hash names, so that a key
// stays with its member while the same members are up. Listings have no key and
// take turns.
var stickyByKey = mode{
	name: ModeStickyByKey, read: walk, write: walk, list: walk,
	next:   byKey,
	spread: true,
}

func byKey(p *pick) int {
	switch {
	case p.req.op == opList:
		return inTurn(p)
	case p.node.cfg.StickyHash == StickyRendezvous:
		return highestScore(p)
	case p.node.mux.opts.Hash != nil:
		return fromHash(p, p.node.mux.opts.Hash(p.req.key))
	default:
		return fromHash(p, fnv1a(p.req.key))
	}
}

func fromHash(p *pick, hash uint32) int {
	return (int(hash%uint32(len(p.set.index))) + p.tries) % len(p.set.index)
}

// fnv1a is the 32-bit hash of Fowler, Noll and Vo in its variant 1a.
func fnv1a(key string) uint32 {
	hash := uint32(2166136261)
	for i := range len(key) {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	return hash
}

// highestScore is rendezvous hashing: of the members not tried yet the one
// whose own hash of the key is highest.
func highestScore(p *pick) int {
	key := xxhash.Sum64String(p.req.key)
	best, bestScore := 0, uint64(0)
	for at, i := range p.set.index {
		if p.tried.has(i) {
			continue
		}
		if score := mix(key ^ p.node.members[i].seed); score >= bestScore {
			best, bestScore = at, score
		}
	}
	return best
}

// mix spreads the bits of x (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
