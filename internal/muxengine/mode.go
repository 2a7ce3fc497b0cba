package muxengine

// executor is the shape in which members are tried.
type executor int

const (
	// walk tries one after another until a success or a semantic error.
	walk executor = iota
	// race asks all at once; the first success wins.
	race
	// fanOut asks all at once and judges every outcome.
	fanOut
)

// mode is one way to choose: which executor serves which kind of request, and
// in which order a walk tries the members that may be chosen.
type mode struct {
	name              Mode
	read, write, list executor

	// next returns the position in p.set of the member to try as the
	// (p.tries+1)-th. It is called at most len(p.set.index) times for one
	// request; a position that was tried before is passed over.
	next func(p *pick) int

	// takes says whether the member may ever be chosen; nil is always.
	takes func(m *member) bool
	// check refuses a configuration; nil accepts all.
	check func(cfg *Config) error
	// weighs says that sets of members need an alias table.
	weighs bool
	// spread says that the mode is defined for KeyspaceSpread.
	spread bool
	// originDecides: of a fan-out the first member's outcome is the outcome.
	originDecides bool
}

// modes is where a mode is registered.
var modes = map[Mode]*mode{
	ModeFailover:    &failover,
	ModeRoundRobin:  &roundRobin,
	ModeWeighted:    &weighted,
	ModeStickyByKey: &stickyByKey,
	ModeShield:      &shield,
	ModeMirror:      &mirror,
}

// executor returns the shape in which op is executed.
func (m *mode) executor(op operation) executor {
	switch {
	case op == opList:
		return m.list
	case op.writes():
		return m.write
	default:
		return m.read
	}
}
