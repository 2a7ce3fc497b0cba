// Command image makes a container image out of one static binary, without a container engine and without a base image:
// a tarball that `ctr images import`, `docker load` and `kind load image-archive` read, a push to a registry, or both.
// The same inputs give the same image, byte for byte.
//
//	image --binary bin/storagemux --name localhost/storagemux:v1 --output storagemux.tar
//	image --binary bin/storagemux --push registry.example.com/storagemux:v1
package main
