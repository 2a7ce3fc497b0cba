package azure

import (
	"context"
	"io"
	"net/http"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// transporter sends the SDK's requests. It follows the body of one through the
// layers that the SDK puts around it.
type transporter struct{ *wire.Connections }

// expectFrom is the size from which the server is asked first whether it would
// take the body.
const expectFrom = 1 << 20

// Do implements policy.Transporter.
func (t transporter) Do(req *http.Request) (*http.Response, error) {
	if content, ok := req.Context().Value(contentKey{}).(*wire.Content); ok && req.Body != nil && req.Body != http.NoBody {
		followed := *req
		followed.Body = content.Reader(req.Body)
		followed.GetBody = nil
		if req.ContentLength >= expectFrom {
			followed.Header = req.Header.Clone()
			followed.Header.Set("Expect", "100-continue")
		}
		req = &followed
	}
	return t.RoundTrip(req)
}

type contentKey struct{}

// following returns a context in which the next request has content.
func following(ctx context.Context, content *wire.Content) context.Context {
	return context.WithValue(ctx, contentKey{}, content)
}

// piece is the next size bytes of a body, in the form that the SDK asks for. It
// can be read once.
type piece struct {
	body *storage.Reader
	size int64
	read int64
}

// Read implements io.Reader.
func (p *piece) Read(b []byte) (int, error) {
	if p.read == p.size {
		return 0, io.EOF
	}
	if rest := p.size - p.read; int64(len(b)) > rest {
		b = b[:rest]
	}
	n, err := p.body.Read(b)
	p.read += int64(n)
	return n, err
}

// Seek implements io.Seeker as far as it is needed to learn the size.
func (p *piece) Seek(offset int64, whence int) (int64, error) {
	switch {
	case p.read == 0 && offset == 0 && whence == io.SeekEnd:
		return p.size, nil
	case p.read == 0 && offset == 0:
		return 0, nil
	}
	return 0, storage.ErrConsumed
}

// Close implements io.Closer.
func (*piece) Close() error { return nil }
