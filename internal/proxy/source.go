package proxy

import "context"

// Offer is a document as a Source found it.
type Offer struct {
	Data []byte
	// Copy says that Data may be older than what is served, as mounted and
	// saved documents are: then it is passed over without a word. An
	// original that is older is refused, and the refusal reported.
	Copy bool
}

// Source finds documents.
type Source interface {
	// Run offers each document that it finds until ctx ends, one at a
	// time. take reports whether the document is served from now on.
	Run(ctx context.Context, take func(context.Context, Offer) bool) error
}
