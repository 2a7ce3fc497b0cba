package storage

// Identity says what a store's entity tags and versions are worth when two
// members are asked whether they hold the same object.
type Identity string

const (
	// IdentityNative: the store computes strong entity tags from content.
	IdentityNative Identity = "native"
	// IdentityStored: the store has no such tags but keeps metadata, and
	// with it the version that a write gives.
	IdentityStored Identity = "stored"
	// IdentityWeak: neither; only size and time tell objects apart.
	IdentityWeak Identity = "weak"
)

// Capabilities are what a store can do. They are honest: what is false here
// answers UNSUPPORTED, what is true passes the acceptance suite.
type Capabilities struct {
	Range            bool     `json:"range"`
	PartialWrite     bool     `json:"partialWrite"`
	Metadata         bool     `json:"metadata"`
	ConditionalWrite bool     `json:"conditionalWrite"`
	Multipart        bool     `json:"multipart"`
	ListOrdered      bool     `json:"listOrdered"`
	Tagging          bool     `json:"tagging"`
	Identity         Identity `json:"identity"`
}

// AllCapabilities is the neutral element of Weakest.
func AllCapabilities() Capabilities {
	return Capabilities{
		Range: true, PartialWrite: true, Metadata: true, ConditionalWrite: true,
		Multipart: true, ListOrdered: true, Tagging: true, Identity: IdentityNative,
	}
}

// Weakest returns what both c and o can do.
func (c Capabilities) Weakest(o Capabilities) Capabilities {
	c.Range = c.Range && o.Range
	c.PartialWrite = c.PartialWrite && o.PartialWrite
	c.Metadata = c.Metadata && o.Metadata
	c.ConditionalWrite = c.ConditionalWrite && o.ConditionalWrite
	c.Multipart = c.Multipart && o.Multipart
	c.ListOrdered = c.ListOrdered && o.ListOrdered
	c.Tagging = c.Tagging && o.Tagging
	if c.Identity.rank() < o.Identity.rank() {
		c.Identity = o.Identity
	}
	return c
}

func (i Identity) rank() int {
	switch i {
	case IdentityNative:
		return 0
	case IdentityStored:
		return 1
	default:
		return 2
	}
}
