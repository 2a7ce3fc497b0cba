// Package tree lists stores that keep folders: it makes pages in byte order of
// whole keys out of listings of single folders, which come in any order.
//
// It imports package storage and nothing else of this module.
package tree
