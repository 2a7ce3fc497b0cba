// Command scale measures the operator against a real API server with thousands
// of simulated proxies that speak the real report protocol over TLS, each at an
// address of its own in 127.0.0.0/8. It writes the figures to docs/scale.md.
//
// The operator is the project's own binary in a process of its own, without a
// lease, so that what it writes is what its work asks for.
//
// Of this module it imports api, muxconfig, render and fleettest.
package main
