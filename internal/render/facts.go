package render

import (
	"errors"
	"fmt"
	"time"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Facts are all that the document of one mux depends on. Every map is by name
// within the mux's namespace; what is absent does not exist.
type Facts struct {
	Mux *v1alpha1.StorageMux
	// Muxes are the other StorageMuxes that Mux nests at any depth, and those
	// that Stored holds.
	Muxes      map[string]*v1alpha1.StorageMux
	Backends   map[string]*v1alpha1.StorageBackend
	Secrets    map[string]Secret
	ConfigMaps map[string]map[string]string
	Claims     map[string]Claim

	// Stored is the document that proxies were given last, nil if there is
	// none for this very mux.
	Stored  *muxconfig.Document
	Proxies []Proxy
	// KnownRevision is the highest revision in the mux's status and in
	// reports: the next document is above it also if Stored was lost.
	KnownRevision int64
	// Transitions is the transition count of the lease that is held.
	Transitions int64

	Material Material
	Now      time.Time
	// Standalone is set by serve: there file.path is allowed, and neither
	// finalizers nor claims nor generated key pairs exist.
	Standalone bool
}

// Secret is the content of a Secret.
type Secret struct {
	Data map[string][]byte
	// Refused is set where the operator may not use the Secret.
	Refused bool
}

// Claim is what matters of a PersistentVolumeClaim.
type Claim struct {
	// SingleNode: the claim can be mounted by one node only.
	SingleNode bool
}

// Material is what is random. Its maker keeps it: it is made once.
type Material struct {
	Admin muxconfig.Admin
	Keys  muxconfig.Keys
	// Client is the key pair that clients sign with where the mux names no
	// Secrets of its own.
	Client muxconfig.KeyPair
}

// Verdict is the outcome of a rule, as a condition shows it.
type Verdict struct {
	OK              bool
	Reason, Message string
}

func refuse(reason, format string, args ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Result is what is to be done for one mux.
type Result struct {
	Accepted, ResolvedRefs Verdict
	// Document is what proxies are to serve: Facts.Stored itself if nothing
	// changes or the topology is frozen, nil if there is nothing to serve.
	Document *muxconfig.Document
	// Shape is the topology of a mux of proxy type None, which has no
	// document: its muxes and backends, and nothing else that is of use.
	Shape *muxconfig.Document
	// TooOld is set where proxies are too old for what the spec asks for, so
	// that they keep what they have.
	TooOld *Verdict
	// Drains are the members on their way out, the root's first, in list
	// order.
	Drains []Drain
}

// ErrDeposed is returned by Document when the stored document was written
// under a later lease than the one that is held.
var ErrDeposed = errors.New("another operator has become leader")
