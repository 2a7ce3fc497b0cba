package muxconfig

// The six modes.
const (
	ModeFailover    = "failover"
	ModeRoundRobin  = "round-robin"
	ModeWeighted    = "weighted"
	ModeStickyByKey = "sticky-by-key"
	ModeShield      = "shield"
	ModeMirror      = "mirror"
)

// The two keyspaces.
const (
	KeyspaceReplicated = "replicated"
	KeyspaceSpread     = "spread"
)

// Values of Mux.StickyHash, Mux.OnFanoutPartial and Health.WhenAllDown.
const (
	StickyFNV1aModulo    = "fnv1a-modulo"
	StickyRendezvous     = "rendezvous"
	FanoutPartialSucceed = "Succeed"
	FanoutPartialFail    = "Fail"
	AllDownTry           = "Try"
	AllDownFail          = "Fail"
)

// Modes returns all modes.
func Modes() []string {
	return []string{ModeFailover, ModeRoundRobin, ModeWeighted, ModeStickyByKey, ModeShield, ModeMirror}
}

// ModeTakesSpread reports whether a mux of that mode may have keyspace spread.
func ModeTakesSpread(mode string) bool {
	return mode != ModeRoundRobin && mode != ModeWeighted
}

// MinMembers is the fewest members that a mux of that mode can work with.
func MinMembers(mode string) int {
	if mode == ModeShield {
		return 2
	}
	return 1
}
