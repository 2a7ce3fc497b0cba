// Package configsource finds a proxy's wire document in a cluster: in the
// config Secret as the API server has it, in the copy that the kubelet mounts,
// and in the copy of what was served last that survives a restart of the
// container.
//
// It is the one part of the proxy that uses client-go. Of this module it
// imports proxy and muxconfig.
package configsource
