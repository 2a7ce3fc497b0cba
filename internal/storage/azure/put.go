package azure

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

const (
	// smallBody is the most that is read before it is sent, in one request
	// and with its MD5.
	smallBody = 256 << 10
	// blockBytes is the size of a block of a body whose length is known,
	// which passes through, and bufferedBlock that of one that is kept until
	// it is known whether it is the last.
	blockBytes    = 16 << 20
	bufferedBlock = 4 << 20
)

// SetStream implements storage.Storage. What makes a body the blob is the list of
// its blocks, which is put after all of them; a small body goes in one request.
// Blocks that no list came for are never seen; the service forgets them.
func (s *Storage) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	if err := s.named(op, key); err != nil {
		return storage.Info{}, err
	}
	if err := storage.RefuseTags(op, opts.Tags); err != nil {
		return storage.Info{}, err
	}
	r, err := storage.OpenBody(ctx, op, body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	w := &write{store: s, op: op, key: key, client: s.client.NewBlockBlobClient(s.prefix + key), body: r}
	if w.headers, w.metadata, err = stored(op, opts); err != nil {
		return storage.Info{}, err
	}
	if w.conditions, err = s.conditions(ctx, op, key, opts.Conditions); err != nil {
		return storage.Info{}, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	defer w.cancel()
	info, err := w.run(ctx, body.Size())
	if err != nil {
		return storage.Info{}, err
	}
	info.Key, info.Size, info.Headers, info.Metadata = key, r.BytesRead(), opts.Headers, opts.Metadata
	return info, nil
}

// write is one SetStream.
type write struct {
	store      *Storage
	op, key    string
	client     *blockblob.Client
	body       *storage.Reader
	cancel     context.CancelFunc
	headers    *blob.HTTPHeaders
	metadata   map[string]*string
	conditions *blob.AccessConditions
	blocks     []string
	id         [16]byte
}

func (w *write) run(ctx context.Context, size int64) (storage.Info, error) {
	if size > smallBody {
		return w.pass(ctx, size)
	}
	head, err := wire.ReadHead(w.body, size, smallBody+1)
	switch {
	case err != nil:
		return storage.Info{}, err
	case w.body.Whole():
		return w.whole(ctx, head)
	default:
		return w.collect(ctx, head)
	}
}

// whole puts a blob in one request.
func (w *write) whole(ctx context.Context, data []byte) (storage.Info, error) {
	sum := md5.Sum(data)
	var result blockblob.UploadResponse
	err := w.send(ctx, int64(len(data)), false, func(ctx context.Context) (err error) {
		result, err = w.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
			HTTPHeaders: w.headers, Metadata: w.metadata, AccessConditions: w.conditions,
			TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		})
		return err
	})
	return infoOfResult(result.ETag, result.LastModified), err
}

// pass puts blocks of a body whose length is known. Nothing of it is kept.
func (w *write) pass(ctx context.Context, size int64) (storage.Info, error) {
	for rest := size; rest > 0; {
		p := &piece{body: w.body, size: min(rest, blockBytes)}
		if err := w.stage(ctx, p, p.size, true); err != nil {
			return storage.Info{}, err
		}
		rest -= p.size
	}
	return w.commit(ctx)
}

// collect puts blocks of a body that begins with head and whose length is not
// known.
func (w *write) collect(ctx context.Context, head []byte) (storage.Info, error) {
	buffer := bufferPool.get()
	defer bufferPool.put(buffer)
	filled := copy(buffer[:], head)
	for {
		n, err := io.ReadFull(w.body, buffer[filled:])
		filled += n
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return storage.Info{}, err
		}
		if w.body.Err() != nil {
			return storage.Info{}, w.body.Err()
		}
		if filled > 0 {
			block := buffer[:filled]
			if err := w.stage(ctx, streaming.NopCloser(bytes.NewReader(block)), int64(filled), false); err != nil {
				return storage.Info{}, err
			}
		}
		if w.body.Whole() {
			return w.commit(ctx)
		}
		filled = 0
	}
}

// stage puts the next block. passing says that it comes straight from the body.
func (w *write) stage(ctx context.Context, block io.ReadSeekCloser, size int64, passing bool) error {
	if len(w.blocks) == 0 {
		_, _ = rand.Read(w.id[:])
	}
	// Ids are of one length and of one write: another write to the key must
	// not replace a block of this.
	id := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(w.id[:], uint32(len(w.blocks))))
	err := w.send(ctx, size, passing, func(ctx context.Context) error {
		_, err := w.client.StageBlock(ctx, id, block, nil)
		return err
	})
	if err != nil {
		if e, is := errors.AsType[*storage.Error](err); is {
			e.Outcome = storage.OutcomeNone
		}
		return err
	}
	w.blocks = append(w.blocks, id)
	return nil
}

// commit makes the blocks the blob.
func (w *write) commit(ctx context.Context) (storage.Info, error) {
	var result blockblob.CommitBlockListResponse
	err := w.send(ctx, 0, false, func(ctx context.Context) (err error) {
		result, err = w.client.CommitBlockList(ctx, w.blocks, &blockblob.CommitBlockListOptions{
			HTTPHeaders: w.headers, Metadata: w.metadata, AccessConditions: w.conditions,
		})
		return err
	})
	return infoOfResult(result.ETag, result.LastModified), err
}

// send does one request and returns once the transport has let go of its body.
func (w *write) send(ctx context.Context, size int64, passing bool, do func(context.Context) error) error {
	content := &wire.Content{Length: size}
	if passing {
		content.Body = w.body
	}
	err := do(following(ctx, content))
	if err != nil {
		err = w.store.failed(ctx, w.op, w.key, err, content)
		w.cancel()
		_ = w.body.Close()
	}
	content.Wait()
	if w.body.Err() != nil {
		return w.body.Err()
	}
	return err
}

func infoOfResult(tag *azcore.ETag, modified *time.Time) storage.Info {
	var info storage.Info
	if tag != nil {
		info.ETag = wire.Unquote(string(*tag))
	}
	if modified != nil {
		info.ModTime = modified.UTC()
	}
	return info
}

// conditions returns c in the service's form, which knows one tag of each kind.
// Anything else is decided on what is there now, and the service is told to take
// the write only if that is so still.
func (s *Storage) conditions(ctx context.Context, op, key string, c storage.Conditions) (*blob.AccessConditions, error) {
	if len(c.IfMatch) == 0 && len(c.IfNoneMatch) == 0 {
		return nil, nil
	}
	if len(c.IfMatch) <= 1 && len(c.IfNoneMatch) <= 1 {
		return accessConditions(c.IfMatch, c.IfNoneMatch), nil
	}
	info, err := s.stat(ctx, op, key)
	missing := storage.CodeOf(err) == storage.CodeKeyNotFound
	if err != nil && !missing {
		return nil, err
	}
	if err := c.CheckWrite(!missing, info); err != nil {
		return nil, err
	}
	if missing {
		return accessConditions(nil, []string{"*"}), nil
	}
	return accessConditions([]string{info.ETag}, nil), nil
}

func accessConditions(ifMatch, ifNoneMatch []string) *blob.AccessConditions {
	conditions := &blob.ModifiedAccessConditions{}
	if len(ifMatch) == 1 {
		conditions.IfMatch = new(azcore.ETag(wire.Quote(ifMatch[0])))
	}
	if len(ifNoneMatch) == 1 {
		conditions.IfNoneMatch = new(azcore.ETag(wire.Quote(ifNoneMatch[0])))
	}
	return &blob.AccessConditions{ModifiedAccessConditions: conditions}
}
