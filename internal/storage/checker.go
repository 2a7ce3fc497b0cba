package storage

import "context"

// Checker is implemented by stores that can be asked whether they would serve
// requests, at the price of one cheap request.
type Checker interface {
	// Check returns nil if the store answers and accepts the credentials
	// and the bucket it was configured with.
	Check(ctx context.Context) error
}

// Probe is a Check by a Stat of key, which need not be there.
func Probe(ctx context.Context, s Storage, key string) error {
	_, err := s.Stat(ctx, key, StatOptions{})
	if CodeOf(err) == CodeKeyNotFound {
		return nil
	}
	return err
}
