package s3

import (
	"net"
	"slices"
	"strings"
)

// target is what the address of a request names. An empty bucket is the
// service itself, an empty key the bucket.
type target struct{ bucket, key string }

// parseTarget reads host and decoded path. The bucket as a host below one of
// domains, or below localhost, is addressed in virtual-host style; all others
// mean path style, also where the name of the service happens to begin with that
// of the bucket.
func parseTarget(host, path, bucket string, domains []string) target {
	path = strings.TrimPrefix(path, "/")
	if bucket != "" && isHostOf(host, bucket, domains) {
		return target{bucket, path}
	}
	name, key, _ := strings.Cut(path, "/")
	return target{name, key}
}

func isHostOf(host, bucket string, domains []string) bool {
	// Most requests end here.
	if len(host) <= len(bucket) || host[len(bucket)] != '.' || !strings.EqualFold(host[:len(bucket)], bucket) {
		return false
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	domain := strings.TrimSuffix(strings.ToLower(name[len(bucket)+1:]), ".")
	return domain == "localhost" || slices.Contains(domains, domain)
}
