package storage

import "context"

// HopHeader is the header with which one StorageMux tells another, whose
// endpoint it uses as a backend, through how many the request came. A loop of
// muxes is found by it.
const HopHeader = "X-Storagemux-Hops"

// MaxHops is the most muxes one behind the other.
const MaxHops = 8

type hopsKey struct{}

// WithHops returns a context of a request that came through n muxes.
func WithHops(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, hopsKey{}, n)
}

// Hops returns through how many muxes the request of ctx came. A store that
// speaks HTTP sends one more in HopHeader.
func Hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}
