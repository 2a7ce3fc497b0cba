package s3

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Storage is a store over a bucket. Other credentials are another Storage:
// requests that run finish on the one that they began on.
type Storage struct {
	target     target
	signer     signer
	clock      clock
	keys       provider
	transport  *wire.Connections
	anonymous  bool
	turns      turns
	trial      trial
	background sync.WaitGroup // aborts of uploads, and the trial
}

var (
	_ storage.Storage   = (*Storage)(nil)
	_ storage.Multipart = (*Storage)(nil)
	_ storage.Copier    = (*Storage)(nil)
	_ storage.Tagger    = (*Storage)(nil)
	_ storage.Checker   = (*Storage)(nil)
	_ io.Closer         = (*Storage)(nil)
)

// New returns a store for cfg. It does no I/O.
func New(cfg Config) (*Storage, error) {
	t, err := cfg.target()
	if err != nil {
		return nil, err
	}
	s := &Storage{target: t, signer: signer{region: t.region}, anonymous: cfg.Auth.Type == Anonymous, turns: newTurns()}
	if s.transport, err = wire.Transport(cfg.CABundle, cfg.MaxInFlight); err != nil {
		return nil, err
	}
	if s.keys, err = cfg.Auth.provider(t.region, s.transport); err != nil {
		return nil, err
	}
	return s, nil
}

// Close waits for the removal of parts of failed uploads, and for a trial, and
// closes idle connections. Requests that run are not disturbed.
func (s *Storage) Close() error {
	s.background.Wait()
	s.transport.CloseIdleConnections()
	return nil
}

// Capabilities implements storage.Storage.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{
		Range: true, PartialWrite: true, Metadata: true, ConditionalWrite: true, Multipart: true,
		ListOrdered: true, Tagging: true, Identity: storage.IdentityNative,
	}
}

// Check implements storage.Checker. It asks for one byte of a key that is
// never there: unlike a HEAD, the answer tells a missing key from a missing bucket.
func (s *Storage) Check(ctx context.Context) error {
	obj, err := s.get(ctx, "Check", storage.ProbeKey, storage.GetOptions{Range: &storage.Range{First: 0, Last: 0}})
	switch storage.CodeOf(err) {
	case storage.CodeKeyNotFound, storage.CodeInvalidRange:
		return nil
	case "":
		if err == nil {
			return obj.Body.Close()
		}
	}
	return err
}

// validate is ValidateKey for keys that get the configured prefix.
func (s *Storage) validate(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if n := len(s.target.prefix) + len(key); n > storage.MaxKeyBytes {
		return storage.Errorf(storage.CodeInvalidKey, op, "with the prefix %q the key has %d bytes and must have at most %d", s.target.prefix, n, storage.MaxKeyBytes)
	}
	return nil
}

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	return s.get(ctx, "GetStream", key, opts)
}

func (s *Storage) get(ctx context.Context, op, key string, opts storage.GetOptions) (*storage.Object, error) {
	if err := s.validate(op, key); err != nil {
		return nil, err
	}
	header := make(http.Header, 10)
	if opts.Range != nil {
		header["Range"] = []string{opts.Range.String()}
	} else {
		header["X-Amz-Checksum-Mode"] = checksumMode
	}
	conditions, err := s.narrow(ctx, key, opts.Conditions)
	if err != nil {
		return nil, err
	}
	addConditions(header, conditions)
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, key: key, header: header})
	if err != nil {
		return nil, err
	}
	obj, err := wire.Object(ctx, op, key, opts.Range, resp)
	if err != nil {
		return nil, err
	}
	obj.Info = infoOf(key, obj.Size, resp.Header)
	return obj, nil
}

// narrow returns c without lists of tags, which few services understand: it
// looks which tag the object has and leaves that one to be matched.
func (s *Storage) narrow(ctx context.Context, key string, c storage.Conditions) (storage.Conditions, error) {
	if len(c.IfMatch) <= 1 && len(c.IfNoneMatch) <= 1 {
		return c, nil
	}
	info, err := s.Stat(ctx, key, storage.StatOptions{})
	if err != nil {
		return c, err
	}
	if err := c.CheckRead(info); err != nil {
		return c, err
	}
	return storage.Conditions{IfMatch: []string{info.ETag}}, nil
}

var checksumMode = []string{"ENABLED"}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	info, _, err := s.head(ctx, "Stat", key, opts.Conditions)
	return info, err
}

// head returns also the headers that an Info has no place for.
func (s *Storage) head(ctx context.Context, op, key string, conditions storage.Conditions) (storage.Info, http.Header, error) {
	if err := s.validate(op, key); err != nil {
		return storage.Info{}, nil, err
	}
	header := make(http.Header, 10)
	header["X-Amz-Checksum-Mode"] = checksumMode
	conditions, err := s.narrow(ctx, key, conditions)
	if err != nil {
		return storage.Info{}, nil, err
	}
	addConditions(header, conditions)
	resp, err := s.send(ctx, &request{op: op, method: http.MethodHead, key: key, header: header})
	if err != nil {
		return storage.Info{}, nil, err
	}
	defer resp.Body.Close()
	if resp.ContentLength < 0 {
		return storage.Info{}, nil, storage.Errorf(storage.CodeUnavailable, op, "the store gave no length for %q", key)
	}
	return infoOf(key, resp.ContentLength, resp.Header), resp.Header, nil
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	const op = "Delete"
	if err := s.validate(op, key); err != nil {
		return err
	}
	return s.delete(ctx, key, nil)
}

// DeleteIf implements storage.ConditionalDeleter. The server is asked first: some
// take no notice of a condition on a DELETE, and then only what changes between the
// two requests is not seen.
func (s *Storage) DeleteIf(ctx context.Context, key string, conditions storage.Conditions) error {
	if err := s.validate("Delete", key); err != nil {
		return err
	}
	now, err := s.Stat(ctx, key, storage.StatOptions{Conditions: storage.Conditions{IfMatch: conditions.IfMatch}})
	if err != nil {
		return err
	}
	header := http.Header{}
	if now.ETag != "" {
		addConditions(header, storage.Conditions{IfMatch: []string{now.ETag}})
	}
	return s.delete(ctx, key, header)
}

func (s *Storage) delete(ctx context.Context, key string, header http.Header) error {
	resp, err := s.send(ctx, &request{op: "Delete", method: http.MethodDelete, key: key, header: header, write: true})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}
