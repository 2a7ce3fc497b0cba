package swift

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// smallBody is the most that is read before it is sent: it goes with its MD5,
// and once more when the token has run out.
const smallBody = 64 << 10

// SetStream implements storage.Storage. The server stores a body that has the
// length it was promised, or, where there is none, whose last chunk has come,
// and which fits the MD5 in its ETag header where that is known beforehand.
func (s *Storage) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	if err := s.named(op, key); err != nil {
		return storage.Info{}, err
	}
	if !opts.Conditions.IsZero() {
		return storage.Info{}, storage.Errorf(storage.CodeUnsupported, op, "Swift does not keep to conditions of writes")
	}
	if err := storage.RefuseTags(op, opts.Tags); err != nil {
		return storage.Info{}, err
	}
	header, err := headerOf(op, opts)
	if err != nil {
		return storage.Info{}, err
	}
	r, err := storage.OpenBody(ctx, op, body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	req := &request{op: op, method: http.MethodPut, key: key, header: header, write: true}
	if size := body.Size(); size > smallBody {
		req.content, req.source = &wire.Content{Length: size, Body: r}, r
	} else {
		head, err := wire.ReadHead(r, size, smallBody+1)
		if err != nil {
			return storage.Info{}, err
		}
		if r.Whole() {
			sum := md5.Sum(head)
			header["Etag"] = []string{hex.EncodeToString(sum[:])}
			req.content, req.source = &wire.Content{Length: int64(len(head))}, bytes.NewReader(head)
		} else {
			req.content, req.source = &wire.Content{Length: -1, Body: r}, io.MultiReader(bytes.NewReader(head), r)
		}
	}
	if req.content.Body != nil {
		header["Expect"] = []string{"100-continue"}
		if sum := opts.Checksums.MD5; sum != nil {
			header["Etag"] = []string{hex.EncodeToString(sum)}
		}
	}
	return s.put(ctx, req, r, opts)
}

// put sends req. It returns once the transport has let go of the body.
func (s *Storage) put(ctx context.Context, req *request, r *storage.Reader, opts storage.SetOptions) (storage.Info, error) {
	sendCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.send(sendCtx, req)
	if err != nil {
		cancel()
		_ = r.Close()
	} else {
		wire.Drain(resp)
	}
	req.content.Wait()
	if r.Err() != nil {
		return storage.Info{}, r.Err()
	}
	if err != nil {
		return storage.Info{}, err
	}
	info := infoOf(req.key, r.BytesRead(), resp.Header)
	info.Headers, info.Metadata = opts.Headers, opts.Metadata
	return info, nil
}
