package storage

import (
	"context"
	"errors"
	"io"
)

// Get, Set and Has are derived from the primitives once, for every Storage.
// They tell a mux below them, through the context, under which name the
// operation is to be traced.

// Get reads the whole object under key.
func Get(ctx context.Context, s Storage, key string) (data []byte, info Info, err error) {
	obj, err := s.GetStream(withOperation(ctx, "get"), key, GetOptions{})
	if err != nil {
		return nil, Info{}, err
	}
	defer func() { err = errors.Join(err, obj.Body.Close()) }()
	data, err = io.ReadAll(obj.Body)
	return data, obj.Info, err
}

// Set stores data under key.
func Set(ctx context.Context, s Storage, key string, data []byte, opts SetOptions) (Info, error) {
	return s.SetStream(withOperation(ctx, "set"), key, Bytes(data), opts)
}

// Has reports whether there is an object under key.
func Has(ctx context.Context, s Storage, key string) (bool, error) {
	_, err := s.Stat(withOperation(ctx, "has"), key, StatOptions{})
	if CodeOf(err) == CodeKeyNotFound {
		// Not errors.Is: a not-found may be one of an outage's causes.
		return false, nil
	}
	return err == nil, err
}

type operationKey struct{}

func withOperation(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operationKey{}, name)
}

// Operation returns the name under which the call that ctx belongs to is
// traced: that of the derived operation around it, else name.
func Operation(ctx context.Context, name string) string {
	if derived, ok := ctx.Value(operationKey{}).(string); ok {
		return derived
	}
	return name
}
