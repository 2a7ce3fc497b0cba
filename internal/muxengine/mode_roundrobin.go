package muxengine

// roundRobin begins one member further with every request.
var roundRobin = mode{
	name: ModeRoundRobin, read: walk, write: walk, list: walk,
	next: inTurn,
}

func inTurn(p *pick) int {
	return int((p.turnOf() + uint64(p.tries)) % uint64(len(p.set.index)))
}
