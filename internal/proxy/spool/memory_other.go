//go:build !unix

package spool

func mapSlab() ([]byte, error) { return make([]byte, slabSize), nil }

func releasePages([]byte) {}
