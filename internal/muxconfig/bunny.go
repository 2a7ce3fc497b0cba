package muxconfig

import "fmt"

// Bunny is a storage zone of bunny.net.
type Bunny struct {
	Zone string `json:"zone"`
	// Region is the first part of the host's name; empty is the default one.
	Region string `json:"region,omitempty"`
	// Endpoint is used in place of the region's host.
	Endpoint  string `json:"endpoint,omitempty"`
	AccessKey Secret `json:"accessKey"`
}

func validateBunny(field string, b *Bunny) error {
	switch {
	case b.Zone == "":
		return invalid(field+".zone", "must not be empty")
	case b.AccessKey == "" || !isHeaderValue(b.AccessKey.Reveal()):
		return invalid(field+".accessKey", "must be of printable ASCII characters, without a line break")
	}
	return nil
}

// Format implements fmt.Formatter.
func (b Bunny) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "zone %s", b.Zone) }
