// Package azure is a store over a container of Azure Blob Storage.
//
// It imports packages storage, staged and wire, and nothing else of this module.
package azure
