package swift

import (
	"net/url"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Config says which container, and as whom.
type Config struct {
	// AuthURL is that of the identity service, with its version.
	AuthURL   string
	Container string
	// Prefix is put before every key.
	Prefix string
	Auth   Auth
	// CABundle holds PEM certificates that are trusted instead of the
	// system's; empty means the system's.
	CABundle []byte
	// MaxInFlight is how many requests are expected at once; 0 is 512.
	MaxInFlight int
}

// Auth is a user with a password. Which of the rest are needed is up to the
// identity service; Region is empty where there is only one.
type Auth struct {
	Username, Password string
	Project            string
	UserDomain         string
	ProjectDomain      string
	Region             string
}

func (c Config) check() error {
	u, err := url.Parse(c.AuthURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return storage.Errorf(storage.CodeRejected, "New", "the address of the identity service must be one such as https://keystone.example.com/v3")
	case c.Container == "" || strings.Contains(c.Container, "/"):
		return storage.Errorf(storage.CodeRejected, "New", "a container is needed, whose name has no slash")
	case c.Auth.Username == "" || c.Auth.Password == "":
		return storage.Errorf(storage.CodeRejected, "New", "a user's name and password are needed")
	}
	return nil
}

// authVersion is the version that the address of an identity service names, or
// 3, which is the only one that services without it in their address have.
func authVersion(address string) int {
	path := address
	if u, err := url.Parse(address); err == nil {
		path = u.Path
	}
	for version, name := range map[int]string{1: "/v1", 2: "/v2"} {
		if strings.Contains(path+"/", name+"/") || strings.Contains(path, name+".") {
			return version
		}
	}
	return 3
}
