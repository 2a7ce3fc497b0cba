// Package proxy serves one mux: it takes wire documents from a source, builds
// storages, engine and front from them, swaps them in while requests run, and
// reports what it serves. Server is the whole; a cluster's proxy and
// `storagemux serve` differ in the Source that they give it and in who may
// reach the admin port.
//
// Of this module it imports storage and the stores, muxengine, muxconfig and
// its own subpackages; neither the API types nor the controller. client-go is
// for its subpackage configsource alone.
package proxy
