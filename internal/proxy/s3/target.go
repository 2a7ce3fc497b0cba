package s3

import (
	"net"
	"strings"
)

// target is what the address of a request names. An empty bucket is the
// service itself, an empty key the bucket.
type target struct{ bucket, key string }

// parseTarget reads host and decoded path. A host that begins with the bucket
// and a dot addresses it in virtual-host style; all others mean path style.
func parseTarget(host, path, bucket string) target {
	path = strings.TrimPrefix(path, "/")
	if bucket != "" && isHostOf(host, bucket) {
		return target{bucket, path}
	}
	name, key, _ := strings.Cut(path, "/")
	return target{name, key}
}

func isHostOf(host, bucket string) bool {
	if len(host) <= len(bucket) || !strings.EqualFold(host[:len(bucket)], bucket) || host[len(bucket)] != '.' {
		return false
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return net.ParseIP(name) == nil
}
