// Package fleet keeps one long poll open to every proxy and holds what each
// said last. It runs on the leader only and apart from the reconcilers, which
// read it without waiting and are woken by it.
//
// It imports muxconfig, and of Kubernetes only names.
package fleet
