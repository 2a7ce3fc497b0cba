package storagetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// BareHTTP is net/http: a PUT and a GET of the key below base, which ends with a
// slash, with the headers given.
func BareHTTP(b *testing.B, base string, header http.Header) *Bare {
	transport := &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	do := func(ctx context.Context, method, key string, body io.Reader, size int64) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, base+key, body)
		if err != nil {
			return nil, err
		}
		req.Header = header.Clone()
		req.ContentLength = size
		resp, err := client.Do(req)
		if err == nil && resp.StatusCode >= 300 {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("%s %s: %s", method, key, resp.Status)
		}
		return resp, err
	}
	return &Bare{
		Name: "net-http",
		Put: func(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
			resp, err := do(ctx, http.MethodPut, key, body, size)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		},
		Get: func(ctx context.Context, key string) (io.ReadCloser, error) {
			resp, err := do(ctx, http.MethodGet, key, nil, 0)
			if err != nil {
				return nil, err
			}
			return resp.Body, nil
		},
	}
}
