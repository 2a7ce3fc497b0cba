package storage

import "context"

// ListPin keeps the pages of one listing with one member of a mux, as long as
// that is up. Where every page comes from all members it stays empty.
type ListPin struct {
	// Member is the path of the leaf that gave the page. Set before the
	// call, that leaf is asked first.
	Member string
}

type listPinKey struct{}

// WithListPin returns a context with which List of a mux heeds and fills pin.
// Other stores leave it alone.
func WithListPin(ctx context.Context, pin *ListPin) context.Context {
	return context.WithValue(ctx, listPinKey{}, pin)
}

// ListPinOf returns the pin of ctx, or nil.
func ListPinOf(ctx context.Context) *ListPin {
	pin, _ := ctx.Value(listPinKey{}).(*ListPin)
	return pin
}
