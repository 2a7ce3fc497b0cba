package azure

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/staged"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Storage is a store over a container.
type Storage struct {
	*staged.Uploads
	client    *container.Client
	prefix    string
	transport *wire.Connections
	expires   time.Time // when the shared access signature ends, or zero
	markers   markers
}

var (
	_ storage.Storage   = (*Storage)(nil)
	_ storage.Multipart = (*Storage)(nil)
	_ storage.Checker   = (*Storage)(nil)
	_ io.Closer         = (*Storage)(nil)

	_ storage.ConditionalDeleter = (*Storage)(nil)
)

// New returns a store for cfg. It does no I/O.
func New(cfg Config) (*Storage, error) {
	transport, err := wire.Transport(cfg.CABundle, cfg.MaxInFlight)
	if err != nil {
		return nil, err
	}
	client, err := cfg.client(transporter{transport})
	if err != nil {
		return nil, err
	}
	s := &Storage{client: client, prefix: cfg.Prefix, transport: transport}
	s.Uploads = staged.New(s, s.named)
	if cfg.Auth.Type == SAS {
		s.expires = cfg.Auth.expiry()
	}
	return s, nil
}

// Close closes idle connections. Requests that run are not disturbed.
func (s *Storage) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Capabilities implements storage.Storage. Entity tags are strong, but another
// one comes with each write, of the same content too.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{
		Range: true, Metadata: true, ConditionalWrite: true, ListOrdered: true, Identity: storage.IdentityStored,
	}
}

// Check implements storage.Checker: the server answers, and with the
// credentials the container can be read.
func (s *Storage) Check(ctx context.Context) error {
	return storage.Probe(ctx, s, storage.ProbeKey)
}

// Limits of the names of blobs.
const (
	maxName     = 1024
	maxSegments = 254
)

// named returns INVALID_KEY for what cannot be a blob's name, or what the
// service would take for another one.
func (s *Storage) named(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	name := s.prefix + key
	if len(name) > maxName {
		return storage.Errorf(storage.CodeInvalidKey, op, "the prefix and the key together must have at most %d bytes", maxName)
	}
	if strings.Count(name, "/") >= maxSegments {
		return storage.Errorf(storage.CodeInvalidKey, op, "the prefix and the key together must have at most %d segments", maxSegments)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if strings.HasSuffix(segment, ".") {
			return storage.Errorf(storage.CodeInvalidKey, op, "no segment of a key may end with a dot: %q", key)
		}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0xfffe && r <= 0xffff }) {
		return storage.Errorf(storage.CodeInvalidKey, op, "a key must not have a backslash or a control character: %q", key)
	}
	return nil
}

// readable is named for reads and deletes: there is nothing under what cannot
// be a name.
func (s *Storage) readable(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if s.named(op, key) != nil {
		return storage.Errorf(storage.CodeKeyNotFound, op, "%q cannot be the name of a blob", key)
	}
	return nil
}

func (s *Storage) blob(key string) *blob.Client { return s.client.NewBlobClient(s.prefix + key) }

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	const op = "GetStream"
	if err := s.readable(op, key); err != nil {
		return nil, err
	}
	if opts.Range != nil && opts.Range.First < 0 {
		return s.getEnd(ctx, op, key, opts)
	}
	obj, err := s.get(ctx, op, key, opts.Range, "")
	if err != nil {
		return nil, err
	}
	return obj, checkRead(obj, opts.Conditions)
}

func checkRead(obj *storage.Object, c storage.Conditions) error {
	err := c.CheckRead(obj.Info)
	if err != nil {
		_ = obj.Body.Close()
	}
	return err
}

// getEnd opens the last bytes of a blob, which the service cannot be asked for
// without knowing its size.
func (s *Storage) getEnd(ctx context.Context, op, key string, opts storage.GetOptions) (*storage.Object, error) {
	const tries = 3 // while it is overwritten
	for try := 1; ; try++ {
		info, err := s.stat(ctx, op, key)
		if err != nil {
			return nil, err
		}
		if err := opts.Conditions.CheckRead(info); err != nil {
			return nil, err
		}
		offset, length, err := opts.Range.Resolve(info.Size)
		if err != nil {
			return nil, err
		}
		obj, err := s.get(ctx, op, key, &storage.Range{First: offset, Last: offset + length - 1}, info.ETag)
		if storage.CodeOf(err) == storage.CodePreconditionFailed && try < tries {
			continue
		}
		return obj, err
	}
}

// get opens what r, which does not count from the end, names of the blob that
// has the tag.
func (s *Storage) get(ctx context.Context, op, key string, r *storage.Range, tag string) (*storage.Object, error) {
	asked := r
	options := &blob.DownloadStreamOptions{}
	if r != nil {
		options.Range.Offset = r.First
		if r.Last >= 0 {
			options.Range.Count = r.Last - r.First + 1
		}
		if r.First == 0 && r.Last < 0 {
			asked = nil // that is all of it
		}
	}
	if tag != "" {
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: new(azcore.ETag(wire.Quote(tag)))}}
	}
	var answer *http.Response
	got, err := s.blob(key).DownloadStream(policy.WithCaptureResponse(ctx, &answer), options)
	if err != nil {
		return nil, s.failed(ctx, op, key, err, nil)
	}
	resp := *answer
	resp.Body = got.Body
	obj, err := wire.Object(ctx, op, key, asked, &resp)
	if err != nil {
		return nil, err
	}
	obj.Info = infoOf(key, obj.Size, resp.Header)
	if r != nil && asked == nil {
		if _, _, err := r.Resolve(obj.Size); err != nil {
			_ = obj.Body.Close()
			return nil, err
		}
	}
	return obj, nil
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	const op = "Stat"
	if err := s.readable(op, key); err != nil {
		return storage.Info{}, err
	}
	info, err := s.stat(ctx, op, key)
	if err != nil {
		return storage.Info{}, err
	}
	return info, opts.Conditions.CheckRead(info)
}

func (s *Storage) stat(ctx context.Context, op, key string) (storage.Info, error) {
	var answer *http.Response
	if _, err := s.blob(key).GetProperties(policy.WithCaptureResponse(ctx, &answer), nil); err != nil {
		return storage.Info{}, s.failed(ctx, op, key, err, nil)
	}
	if answer.ContentLength < 0 {
		return storage.Info{}, storage.Errorf(storage.CodeUnavailable, op, "the store gave no length for %q", key)
	}
	return infoOf(key, answer.ContentLength, answer.Header), nil
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	err := s.remove(ctx, "Delete", key, nil)
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	return err
}

// DeleteIf implements storage.ConditionalDeleter.
func (s *Storage) DeleteIf(ctx context.Context, key string, conditions storage.Conditions) error {
	const op = "Delete"
	only, err := s.conditions(ctx, op, key, storage.Conditions{IfMatch: conditions.IfMatch})
	if err != nil {
		return err
	}
	err = s.remove(ctx, op, key, only)
	if storage.CodeOf(err) != storage.CodePreconditionFailed {
		return err
	}
	// The service says the same of a blob that is not there.
	if _, missing := s.stat(ctx, op, key); storage.CodeOf(missing) == storage.CodeKeyNotFound {
		return missing
	}
	return err
}

func (s *Storage) remove(ctx context.Context, op, key string, only *blob.AccessConditions) error {
	if err := s.readable(op, key); err != nil {
		return err
	}
	_, err := s.blob(key).Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: new(blob.DeleteSnapshotsOptionTypeInclude), AccessConditions: only})
	if err != nil {
		return s.failed(ctx, op, key, err, &wire.Content{})
	}
	return nil
}

// SetPartial implements storage.Storage.
func (s *Storage) SetPartial(_ context.Context, key string, _ int64, _ storage.Body) (storage.Info, error) {
	return storage.Info{}, storage.Errorf(storage.CodeUnsupported, "SetPartial", "block blobs cannot be written in part: %q", key)
}
