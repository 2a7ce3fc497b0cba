package muxconfig

import (
	"time"
)

// SchemaVersion is the newest schema that this build writes and reads, and
// MinSchemaVersion the oldest. NeedsSchema tells what each version added.
const (
	SchemaVersion    = 2
	MinSchemaVersion = 1
)

// Bounds of a document.
const (
	// MaxMembers is the most members, nested muxes included and counted
	// once per path, that a topology may have.
	MaxMembers = 256
	// MaxDepth is how many muxes may lie on one path.
	MaxDepth = 8
	// MaxBytes is the largest encoded document.
	MaxBytes = 256 << 10
	// MaxDomains is the most domains of the frontend.
	MaxDomains = 8
	// MaxKeyPairs is the most client key pairs that are valid at once.
	MaxKeyPairs = 4
)

// SecretKey is the key of the config Secret that holds the document.
const SecretKey = "document.json"

// Document is everything a proxy needs to serve one mux.
type Document struct {
	// Schema is the schema version of the document.
	Schema int `json:"schema"`
	// Revision rises with every change. Transitions is the transition count
	// of the lease under which the writer was leader; a document never
	// replaces one with higher Transitions.
	Revision    int64 `json:"revision"`
	Transitions int64 `json:"transitions"`
	// Hash is ContentHash of the rest of the document.
	Hash string `json:"hash"`

	// Owner is the StorageMux that the document was rendered for.
	Owner Owner `json:"owner"`

	Frontend Frontend `json:"frontend"`
	Admin    Admin    `json:"admin"`
	Keys     Keys     `json:"keys"`

	// Root names the mux, of Muxes, that the frontend serves.
	Root string `json:"root"`
	// Muxes and Backends are sorted by name, which is unique in each list.
	Muxes    []Mux     `json:"muxes"`
	Backends []Backend `json:"backends"`

	// Released are deleted backends that the spec still lists and that this
	// topology no longer holds. They are not taken in again: that is what
	// lets the backend's owner end its deletion.
	Released []Released `json:"released,omitempty"`
}

// Owner identifies a StorageMux.
type Owner struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Released identifies a backend or mux that was let go.
type Released struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Frontend is the S3 endpoint.
type Frontend struct {
	Bucket string `json:"bucket"`
	// Domains are the names of hosts below which the bucket is a host of its
	// own: at most MaxDomains, in lower case and without a port.
	Domains []string `json:"domains,omitempty"`
	// Auth is "SigV4" or "None".
	Auth string `json:"auth"`
	// KeyPairs are valid at the same time; 1 to MaxKeyPairs with SigV4.
	KeyPairs []KeyPair `json:"keyPairs,omitempty"`
	// TLS is nil where the endpoint speaks plain HTTP.
	TLS *KeyCert `json:"tls,omitempty"`
}

// Values of Frontend.Auth.
const (
	FrontendSigV4 = "SigV4"
	FrontendNone  = "None"
)

// KeyPair is a client's credential.
type KeyPair struct {
	AccessKeyID     string `json:"accessKeyID"`
	SecretAccessKey Secret `json:"secretAccessKey"`
}

// KeyCert is a PEM certificate chain and its PEM key.
type KeyCert struct {
	Cert string `json:"cert"`
	Key  Secret `json:"key"`
}

// Admin is what guards the admin port.
type Admin struct {
	// Token is the bearer token that callers show.
	Token Secret `json:"token"`
	// TLS is the server certificate; callers pin it.
	TLS KeyCert `json:"tls"`
}

// Keys seal what clients hold between requests (list tokens, upload ids).
// Each is 32 random bytes in base64. Current seals; both open.
type Keys struct {
	Current  Secret `json:"current"`
	Previous Secret `json:"previous,omitempty"`
}

// Mux is one StorageMux of the topology.
type Mux struct {
	Name     string   `json:"name"`
	UID      string   `json:"uid"`
	Mode     string   `json:"mode"`
	Keyspace string   `json:"keyspace"`
	Members  []Member `json:"members"`
	// StickyHash and OnFanoutPartial may be empty, which is their first value.
	StickyHash      string   `json:"stickyHash,omitempty"`
	OnFanoutPartial string   `json:"onFanoutPartial,omitempty"`
	BackendTimeout  Duration `json:"backendTimeout"`
	Retry           Retry    `json:"retry"`
	Health          Health   `json:"health"`
}

// Member is one entry of a mux's list. Exactly one of Backend and Mux is set.
type Member struct {
	Name string `json:"name"`
	// Backend and Mux name an entry of Document.Backends or .Muxes.
	Backend string `json:"backend,omitempty"`
	Mux     string `json:"mux,omitempty"`
	// Weight is set in mode weighted.
	Weight *int32 `json:"weight,omitempty"`
	// Drain is set while the member is on its way out.
	Drain *Drain `json:"drain,omitempty"`
}

// Drain says how far a member is on its way out.
type Drain struct {
	Phase DrainPhase `json:"phase"`
	// Deadline is when what is still running is cancelled. It is set with
	// phase Granted.
	Deadline *time.Time `json:"deadline,omitempty"`
}

// DrainPhase is a step of a drain.
type DrainPhase string

const (
	// DrainReadOnly: in keyspace spread, a member that is to go takes
	// deletes and reads but no writes, until its store is empty.
	DrainReadOnly DrainPhase = "ReadOnly"
	// DrainGranted: the member is not chosen any more; what runs may finish.
	DrainGranted DrainPhase = "Granted"
)

// Retry is the in-backend retry.
type Retry struct {
	MaxAttempts     int32    `json:"maxAttempts"`
	InitialInterval Duration `json:"initialInterval"`
	MaxInterval     Duration `json:"maxInterval"`
}

// Health is the passive health of a mux's members.
type Health struct {
	Cooldown    Duration `json:"cooldown"`
	MaxCooldown Duration `json:"maxCooldown"`
	// WhenAllDown is "Try" or "Fail".
	WhenAllDown string `json:"whenAllDown"`
}

// Backend is one StorageBackend. Exactly one of the types is set.
type Backend struct {
	Name string `json:"name"`
	// UID tells a backend from a later one of the same name: runtime state
	// belongs to the UID.
	UID string `json:"uid"`

	S3     *S3     `json:"s3,omitempty"`
	HTTP   *HTTP   `json:"http,omitempty"`
	File   *File   `json:"file,omitempty"`
	Memory *Memory `json:"memory,omitempty"`
	Bunny  *Bunny  `json:"bunny,omitempty"`
	Swift  *Swift  `json:"swift,omitempty"`
	Azure  *Azure  `json:"azure,omitempty"`

	Fallback *Fallback `json:"fallback,omitempty"`

	// Timeout is zero where the mux's BackendTimeout applies.
	Timeout     Duration     `json:"timeout,omitzero"`
	MaxInFlight int32        `json:"maxInFlight"`
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
}

// HealthCheck is an active check.
type HealthCheck struct {
	Interval Duration `json:"interval"`
	Timeout  Duration `json:"timeout"`
}

// S3 is a bucket of an S3 service.
type S3 struct {
	// Endpoint is a URL; empty is AWS itself.
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	// AddressingStyle is "Auto", "Path" or "VirtualHosted".
	AddressingStyle string `json:"addressingStyle"`
	Auth            S3Auth `json:"auth"`
	// CABundle is PEM; empty is the system's roots.
	CABundle string `json:"caBundle,omitempty"`
}

// S3Auth says who the proxy is for an S3 service.
type S3Auth struct {
	// Type is "Secret", "Ambient" or "Anonymous".
	Type            string `json:"type"`
	AccessKeyID     string `json:"accessKeyID,omitempty"`
	SecretAccessKey Secret `json:"secretAccessKey,omitempty"`
	SessionToken    Secret `json:"sessionToken,omitempty"`
}

// Values of S3Auth.Type.
const (
	AuthSecret    = "Secret"
	AuthAmbient   = "Ambient"
	AuthAnonymous = "Anonymous"
)

// Values of S3.AddressingStyle.
const (
	AddressingAuto          = "Auto"
	AddressingPath          = "Path"
	AddressingVirtualHosted = "VirtualHosted"
)

// File is a folder that the proxy sees under Path.
type File struct {
	Path string `json:"path"`
}

// Memory is a store in the proxy's memory.
type Memory struct {
	// SizeLimit is in bytes.
	SizeLimit int64 `json:"sizeLimit"`
}

// Mux returns the mux of that name, or nil.
func (d *Document) Mux(name string) *Mux {
	for i := range d.Muxes {
		if d.Muxes[i].Name == name {
			return &d.Muxes[i]
		}
	}
	return nil
}

// Backend returns the backend of that name, or nil.
func (d *Document) Backend(name string) *Backend {
	for i := range d.Backends {
		if d.Backends[i].Name == name {
			return &d.Backends[i]
		}
	}
	return nil
}

// Supersedes reports whether d may replace old, which may be nil: it must not
// come from an earlier leader, nor from an earlier moment of the same one.
func (d *Document) Supersedes(old *Document) bool {
	if old == nil || d.Transitions != old.Transitions {
		return old == nil || d.Transitions > old.Transitions
	}
	return d.Revision > old.Revision
}
