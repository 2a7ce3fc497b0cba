package s3

import (
	"net"
	"net/url"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Config says which bucket, where, and as whom.
type Config struct {
	// Endpoint is a URL, "https://s3.example.com"; empty is AWS itself. A
	// path in it comes before the bucket's name.
	Endpoint string
	// Region is part of each signature; empty is us-east-1.
	Region string
	Bucket string
	// Prefix comes before every key.
	Prefix          string
	AddressingStyle AddressingStyle
	Auth            Auth
	// CABundle holds PEM certificates that are trusted instead of the
	// system's; empty means the system's.
	CABundle []byte
	// MaxInFlight is how many requests are expected at once, the number of
	// connections worth keeping; 0 is 512.
	MaxInFlight int
}

// AddressingStyle says where in a URL the bucket's name goes.
type AddressingStyle string

// Addressing styles. Auto is VirtualHosted at AWS if the name allows it, and
// Path elsewhere. The zero value is Auto.
const (
	Auto          AddressingStyle = "Auto"
	Path          AddressingStyle = "Path"
	VirtualHosted AddressingStyle = "VirtualHosted"
)

// Auth says as whom requests are made.
type Auth struct {
	Type AuthType
	// Of type Static.
	AccessKeyID, SecretAccessKey, SessionToken string
}

// AuthType is a way to get credentials.
type AuthType string

// Ways to get credentials. Ambient looks at the environment's variables, a web
// identity token, a container's credentials endpoint and the instance's metadata
// service.
const (
	Static    AuthType = "Static"
	Ambient   AuthType = "Ambient"
	Anonymous AuthType = "Anonymous"
)

const defaultRegion = "us-east-1"

// target is what a Config's addresses come to.
type target struct {
	scheme, host string
	// before is the path in front of the key, without a trailing slash:
	// that of the endpoint, and the bucket's name in style Path.
	before string
	region string
	bucket string
	prefix string
}

func (c Config) target() (target, error) {
	t := target{region: c.Region, bucket: c.Bucket, prefix: c.Prefix}
	if t.region == "" {
		t.region = defaultRegion
	}
	if t.bucket == "" || strings.ContainsAny(t.bucket, "/?#") {
		return t, invalid("the bucket's name %q is not valid", c.Bucket)
	}
	aws := c.Endpoint == ""
	if aws {
		t.scheme, t.host = "https", "s3."+t.region+".amazonaws.com"
		if strings.HasPrefix(t.region, "cn-") {
			t.host += ".cn"
		}
	} else {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
			return t, invalid("the endpoint must be a URL such as https://s3.example.com")
		}
		t.scheme, t.host, t.before = u.Scheme, u.Host, strings.TrimSuffix(u.Path, "/")
		aws = strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn")
	}
	switch c.AddressingStyle {
	case "", Auto:
		// A certificate for *.s3.REGION.amazonaws.com covers no further dot.
		if aws && !strings.Contains(t.bucket, ".") {
			t.host = t.bucket + "." + t.host
			return t, nil
		}
	case VirtualHosted:
		if host, _, err := net.SplitHostPort(t.host); net.ParseIP(t.host) != nil || err == nil && net.ParseIP(host) != nil {
			return t, invalid("a bucket cannot be part of the host name of an IP address: use addressing style Path")
		}
		t.host = t.bucket + "." + t.host
		return t, nil
	case Path:
	default:
		return t, invalid("the addressing style %q is unknown", c.AddressingStyle)
	}
	t.before += "/" + t.bucket
	return t, nil
}

func invalid(format string, args ...any) error {
	return storage.Errorf(storage.CodeRejected, "New", format, args...)
}
