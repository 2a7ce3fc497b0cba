package muxengine

// failover tries the members in their configured order.
var failover = mode{
	name: ModeFailover, read: walk, write: walk, list: walk,
	next:   inOrder,
	spread: true,
}

func inOrder(p *pick) int { return p.tries }
