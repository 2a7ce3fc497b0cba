// Package fallbackuri makes one store of the candidates of a fallback:// URI:
// reads walk or race them, writes reach all or the first that takes them, lists
// are merged. The executors and the classification of errors are the engine's and
// the contract's; this package adds the policy over them, recursion with its
// limits, and the outcome of each candidate. It keeps no health and retries
// nothing.
//
// Of this module it imports internal/storage, internal/muxengine and its own
// parser in uri. It must not import Kubernetes.
package fallbackuri
