// Package v1alpha1 holds the API of StorageMux: the kinds StorageBackend and StorageMux, their validation, and the names
// (conditions, reasons, annotations, Secret keys) that controllers, proxies and users share. It decides nothing: the rules
// that a single object can be judged by are in the schema, all others belong to package render.
//
// It may import nothing of this project, and neither controller-runtime nor a client.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=storagemux.dev
package v1alpha1
