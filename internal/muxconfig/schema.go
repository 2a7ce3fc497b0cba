package muxconfig

import "fmt"

// NeedsSchema returns the oldest schema that can express d, and the field that
// an older one lacks.
//
// Version 1 knows the backend types s3, file and memory; version 2 knows all.
func NeedsSchema(d *Document) (version int, field string) {
	for i := range d.Backends {
		if b := &d.Backends[i]; b.S3 == nil && b.File == nil && b.Memory == nil {
			return 2, fmt.Sprintf("the type of backend %s", b.Name)
		}
	}
	if len(d.Frontend.Domains) > 0 {
		return 2, "the domains of the frontend"
	}
	return 1, ""
}
