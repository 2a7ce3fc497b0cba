package muxconfig

import (
	"fmt"
	"strings"
)

// Swift is a container of OpenStack Swift.
type Swift struct {
	// AuthURL is that of the identity service, with its version.
	AuthURL   string    `json:"authURL"`
	Container string    `json:"container"`
	Prefix    string    `json:"prefix,omitempty"`
	Auth      SwiftAuth `json:"auth"`
	// CABundle is PEM; empty is the system's roots.
	CABundle string `json:"caBundle,omitempty"`
}

// SwiftAuth says who the proxy is for an identity service. Which of the last
// four are needed is up to that.
type SwiftAuth struct {
	Username      string `json:"username"`
	Password      Secret `json:"password"`
	Project       string `json:"project,omitempty"`
	UserDomain    string `json:"userDomain,omitempty"`
	ProjectDomain string `json:"projectDomain,omitempty"`
	Region        string `json:"region,omitempty"`
}

func validateSwift(field string, s *Swift) error {
	switch {
	case s.AuthURL == "":
		return invalid(field+".authURL", "must not be empty")
	case s.Container == "" || strings.Contains(s.Container, "/"):
		return invalid(field+".container", "must not be empty nor contain a slash")
	case s.Auth.Username == "" || s.Auth.Password == "":
		return invalid(field+".auth", "must have a user's name and password")
	}
	return nil
}

// Format implements fmt.Formatter.
func (s Swift) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "container %s by %s", s.Container, s.AuthURL)
}

// Format implements fmt.Formatter.
func (a SwiftAuth) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "auth %s of %s", a.Username, a.Project)
}
