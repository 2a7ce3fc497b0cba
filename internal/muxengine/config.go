package muxengine

import (
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Mode names how a mux chooses among its members.
type Mode string

// The six modes.
const (
	ModeFailover    Mode = "failover"
	ModeRoundRobin  Mode = "round-robin"
	ModeWeighted    Mode = "weighted"
	ModeStickyByKey Mode = "sticky-by-key"
	ModeShield      Mode = "shield"
	ModeMirror      Mode = "mirror"
)

// Keyspace says what a member's not-found means.
type Keyspace string

const (
	// KeyspaceReplicated says that every member holds every key, so that the first
	// member's not-found is the answer. It is the default.
	KeyspaceReplicated Keyspace = "replicated"
	// KeyspaceSpread says that a key may live on any one member, so that a not-found
	// looks further and is the answer only if every member gave it.
	KeyspaceSpread Keyspace = "spread"
)

// WhenAllDown says what happens to a request while every member is down.
type WhenAllDown string

const (
	// WhenAllDownFail answers ALL_BACKENDS_DOWN at once. It is the default.
	WhenAllDownFail WhenAllDown = "Fail"
	// WhenAllDownTry lets one request at a time try the member whose
	// cooldown ends first; a write is preceded by a Stat.
	WhenAllDownTry WhenAllDown = "Try"
)

// OnFanoutPartial says what a write answers that succeeded on some members only.
type OnFanoutPartial string

const (
	// FanoutPartialSucceed reports the write as done, with an event. It is
	// the default.
	FanoutPartialSucceed OnFanoutPartial = "Succeed"
	// FanoutPartialFail answers WRITE_FANOUT_PARTIAL; what was written stays.
	FanoutPartialFail OnFanoutPartial = "Fail"
)

// StickyHash names the function from a key to its member in mode sticky-by-key.
type StickyHash string

const (
	// StickyFNV1aModulo is FNV-1a (32 bit) modulo the number of members
	// that are up. It is the default.
	StickyFNV1aModulo StickyHash = "fnv1a-modulo"
	// StickyRendezvous moves only the keys of a member that comes or goes.
	StickyRendezvous StickyHash = "rendezvous"
)

// Limits that New and Apply enforce.
const (
	// MaxMembers is the most members of one mux.
	MaxMembers = 256
	// MaxDepth is the most muxes on a path from the outermost mux to a leaf.
	MaxDepth = 8
)

// Defaults of Config's zero values.
const (
	DefaultBackendTimeout = 30 * time.Second
	DefaultCooldown       = time.Second
	DefaultMaxCooldown    = 64 * time.Second
	DefaultDrainTimeout   = 10 * time.Minute
)

// Config is the whole topology of a mux. New and Apply take it over: nothing
// that it points to may change afterwards.
type Config struct {
	// Name of the mux in events, spans and errors.
	Name string
	// Mode chooses among the members. An unknown one is INVALID_MODE.
	Mode Mode
	// Keyspace says what a not-found means; empty is KeyspaceReplicated.
	Keyspace Keyspace
	// Members in order. None is NO_BACKENDS_CONFIGURED, two of one name are
	// BACKEND_NAME_CONFLICT, a shield of one is MIRROR_ORIGIN_REQUIRED.
	Members []Member
	// BackendTimeout is the Timeout of leaves that set none.
	BackendTimeout time.Duration
	// Retry is applied to each leaf in place, before the next is tried.
	Retry Retry
	// Health rules the passive health of the leaves.
	Health Health
	// OnFanoutPartial is for modes that write to several members.
	OnFanoutPartial OnFanoutPartial
	// StickyHash is for mode sticky-by-key.
	StickyHash StickyHash
}

// Member is one member of a mux: a leaf, or a mux of its own.
type Member struct {
	// Name of the member, unique within its mux.
	Name string
	// ID is the identity that runtime state (health, figures, requests in
	// flight) belongs to; it is unique within the whole tree. A member that
	// keeps its ID across Apply keeps that state, also when its Storage is
	// another one; one that changes it starts clean, and what runs on the
	// old one is drained. Empty: the path of names from the outermost mux.
	ID string
	// Storage of the member; a *Mux is nested as it is and goes on being
	// owned by the caller. Exactly one of Storage and Mux is set.
	Storage storage.Storage
	// Mux describes a nested mux that the engine builds, reloads and closes
	// together with this one, so that a request never sees half a reload.
	Mux *Config
	// Weight is the member's share in mode weighted. It is required there,
	// else WEIGHTED_REQUIRES_WEIGHTS; negative, or zero everywhere, is
	// INVALID_WEIGHT.
	Weight *int

	// Timeout is how long a leaf may take from the last byte that it was
	// sent to the first byte of its answer, and how long it may stall while
	// it is waited for. It never limits a whole transfer. Zero: the mux's
	// BackendTimeout.
	Timeout time.Duration
	// MaxInFlight is the most requests a leaf has open at a time, counted
	// until the body is closed; 0 is no limit. At the limit reads go
	// elsewhere and writes wait up to a second.
	MaxInFlight int
	// MayBlock says that a leaf may ignore the end of its context, as calls
	// into a file system that hangs do. The engine then leaves such calls
	// alone when their time is up; they stay counted as in flight.
	MayBlock bool
	// Composed says that the leaf is made of stores that have attempts of their
	// own: it is not asked again in place.
	Composed bool
	// HealthCheck is the active check of a leaf; without an Interval there
	// is none.
	HealthCheck HealthCheck

	// Drain says how far the removal of this member has come.
	Drain Drain
	// DrainTimeout is how long requests on the member may go on after an
	// Apply that leaves it out. Zero: DefaultDrainTimeout.
	DrainTimeout time.Duration
}

// Retry is the in-place retry of a leaf. Timeouts are never retried in place,
// and writes only while their body can be read again.
type Retry struct {
	// MaxAttempts counts the first try; below 2 there is no retry.
	MaxAttempts int
	// InitialInterval is the pause before the second try; each further one
	// is twice as long, up to MaxInterval, with jitter.
	InitialInterval time.Duration
	MaxInterval     time.Duration
}

// Health rules how long a member stays down after failures of requests.
type Health struct {
	// Cooldown after the n-th failure in a row is
	// min(Cooldown * 2^min(n-1, 6), MaxCooldown).
	Cooldown    time.Duration
	MaxCooldown time.Duration
	// WhenAllDown is for the time when no member is up; empty is Fail.
	WhenAllDown WhenAllDown
	// Stateless: no outcome of a request takes a member down, so that each
	// call asks whom its mode names, whatever became of those before.
	Stateless bool
}

// HealthCheck is an active check: it calls storage.Checker where the leaf has
// it, else asks for storage.ProbeKey, whose absence is healthy. Any other
// failure takes the member down until a check passes.
type HealthCheck struct {
	Interval time.Duration
	// Timeout of one check; zero is Interval.
	Timeout time.Duration
}

// DrainPhase says what a member that is being removed still takes.
type DrainPhase int

const (
	// DrainNone means that the member is not being removed.
	DrainNone DrainPhase = iota
	// DrainWritesRefused means that the member takes reads and deletes, no other
	// writes. Its state is draining.
	DrainWritesRefused
	// DrainGranted means that the member is not chosen any more. What runs on it may
	// finish until the deadline.
	DrainGranted
)

// Drain is the removal of a member as the configuration asks for it.
type Drain struct {
	Phase DrainPhase
	// Deadline of DrainGranted, after which requests still in flight are
	// cancelled with storage.CauseDrain. Zero: they may take all the time
	// they need.
	Deadline time.Time
}
