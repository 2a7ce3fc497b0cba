package bunny

import (
	"net/url"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/scratch"
)

// host is that of the default region; the others have their code before it.
const host = "storage.bunnycdn.com"

// Config says which zone, and with which password.
type Config struct {
	Zone string
	// Region is the code of the zone's main region, "uk"; empty is the
	// default one.
	Region string
	// Endpoint is the address of the API in place of the one that Region
	// gives, "https://host".
	Endpoint  string
	AccessKey string
	// CABundle holds PEM certificates that are trusted instead of the
	// system's; empty means the system's.
	CABundle []byte
	// MaxInFlight is how many requests are expected at once; 0 is 512.
	MaxInFlight int
	// Scratch is where bodies are kept whose SHA-256 is not known before
	// they have come; nil is the system's folder for temporary files.
	Scratch scratch.Space
}

// defaultScratch bounds the bodies in the system's folder for temporary files.
const defaultScratch = 8 << 30

// base returns the URL of the zone, with a slash at its end.
func (c Config) base() (*url.URL, error) {
	endpoint := c.Endpoint
	switch {
	case endpoint == "" && c.Region == "":
		endpoint = "https://" + host
	case endpoint == "":
		endpoint = "https://" + c.Region + "." + host
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Path != "" && u.Path != "/" {
		return nil, storage.Errorf(storage.CodeRejected, "New", "the endpoint must be one such as https://uk.%s", host)
	}
	if c.Zone == "" || c.AccessKey == "" {
		return nil, storage.Errorf(storage.CodeRejected, "New", "a storage zone and its access key are needed")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + c.Zone + "/"}, nil
}
