package bunny

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/scratch"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// expectFrom is the size from which the server is asked first whether it would
// take the body.
const expectFrom = 1 << 20

// SetStream implements storage.Storage. The server stores what fits the header
// Checksum and nothing else. Where the SHA-256 is not known beforehand, the body
// is kept until it is.
func (s *Storage) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	if err := writable(op, key); err != nil {
		return storage.Info{}, err
	}
	if !opts.Conditions.IsZero() {
		return storage.Info{}, storage.Errorf(storage.CodeUnsupported, op, "storage zones know no conditions of writes")
	}
	if err := storage.RefuseTags(op, opts.Tags); err != nil {
		return storage.Info{}, err
	}
	r, err := storage.OpenBody(ctx, op, body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	if sum := opts.Checksums.SHA256; sum != nil && body.Size() > 0 {
		content := &wire.Content{Length: body.Size(), Body: r}
		return s.put(ctx, op, key, content, r, r, sum, opts)
	}
	kept, err := scratch.Keep(s.scratch, op, r, body.Size())
	if err != nil {
		return storage.Info{}, err
	}
	defer kept.Close()
	return s.put(ctx, op, key, &wire.Content{Length: kept.Size}, kept.Reader(), r, kept.SHA256, opts)
}

// put sends source. It returns once the transport has let go of it.
func (s *Storage) put(ctx context.Context, op, key string, content *wire.Content, source io.Reader, r *storage.Reader, sum []byte, opts storage.SetOptions) (storage.Info, error) {
	header := http.Header{"Checksum": {strings.ToUpper(hex.EncodeToString(sum))}}
	contentType := opts.Headers.ContentType
	if contentType != "" {
		// The one is documented; the other is what official clients send.
		header["Content-Type"], header["Override-Content-Type"] = []string{contentType}, []string{contentType}
	}
	if content.Length > expectFrom {
		header["Expect"] = []string{"100-continue"}
	}
	sendCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.send(sendCtx, &request{op: op, method: http.MethodPut, path: key, header: header, content: content, source: source, write: true})
	if err != nil {
		cancel()
		_ = r.Close()
	} else {
		wire.Drain(resp)
	}
	content.Wait()
	if r.Err() != nil {
		return storage.Info{}, r.Err()
	}
	if err != nil {
		return storage.Info{}, err
	}
	return storage.Info{
		Key: key, Size: content.Length, Headers: storage.Headers{ContentType: contentType},
		Checksums: storage.Checksums{SHA256: sum},
	}, nil
}
