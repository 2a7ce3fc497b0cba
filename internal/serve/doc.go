// Package serve serves one StorageMux without a cluster: it reads the manifests
// that a cluster would get, holds them to the schema, defaults and rules of the
// CustomResourceDefinitions, renders them as the operator does, and hands the
// document to a proxy.
//
// Of this module it imports api, render, muxconfig, proxy and the embedded
// definitions of config/crd; not the controller.
package serve
