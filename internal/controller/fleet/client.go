package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// maxReport bounds what is read of one answer: 256 members and 256 events take
// a small part of it.
const maxReport = 4 << 20

// client asks one proxy for reports, over one connection that it keeps.
type client struct {
	fleet     *Fleet
	target    Target
	transport *http.Transport
}

func newClient(f *Fleet, t Target) *client {
	c := &client{fleet: f, target: t}
	dial := f.options.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: f.options.Timeout, KeepAlive: f.options.Timeout}).DialContext
	}
	c.transport = &http.Transport{
		DialContext:         dial,
		TLSHandshakeTimeout: f.options.Timeout,
		MaxIdleConns:        1,
		IdleConnTimeout:     2 * f.options.Wait,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13,
			// The certificate is self-signed and compared byte by
			// byte instead.
			InsecureSkipVerify: true, //nolint:gosec // verified by VerifyConnection
			VerifyConnection:   c.verify,
		},
	}
	return c
}

func (c *client) close() { c.transport.CloseIdleConnections() }

func (c *client) verify(state tls.ConnectionState) error {
	for _, text := range c.fleet.access(c.target.Mux).Certs {
		if block, _ := pem.Decode([]byte(text)); block != nil && slices.Equal(block.Bytes, state.PeerCertificates[0].Raw) {
			return nil
		}
	}
	return errors.New("the proxy shows a certificate that is not the one of its document")
}

// poll returns the first report that is newer than cursor, or after wait the
// current one.
func (c *client) poll(ctx context.Context, cursor string, wait time.Duration) (*muxconfig.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+c.fleet.options.Timeout)
	defer cancel()
	tokens := c.fleet.access(c.target.Mux).Tokens
	for i, token := range tokens {
		report, status, err := c.get(ctx, token, cursor, wait)
		if status == http.StatusUnauthorized && i < len(tokens)-1 {
			continue
		}
		return report, err
	}
	return nil, errors.New("poll a proxy: the mux has no document with a token yet")
}

func (c *client) get(ctx context.Context, token muxconfig.Secret, cursor string, wait time.Duration) (*muxconfig.Report, int, error) {
	query := url.Values{muxconfig.ReportWaitParam: {wait.String()}}
	if cursor != "" {
		query.Set(muxconfig.ReportCursorParam, cursor)
	}
	address := url.URL{
		Scheme: "https", Host: net.JoinHostPort(c.target.IP, c.fleet.options.Port),
		Path: muxconfig.ReportPath, RawQuery: query.Encode(),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, 0, fmt.Errorf("poll pod %s: %w", c.target.Pod, err)
	}
	request.Header.Set("Authorization", "Bearer "+token.Reveal())
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, 0, fmt.Errorf("poll pod %s: %w", c.target.Pod, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode, fmt.Errorf("poll pod %s: status %s", c.target.Pod, response.Status)
	}
	report := &muxconfig.Report{}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReport)).Decode(report); err != nil {
		return nil, 0, fmt.Errorf("read the report of pod %s: %w", c.target.Pod, err)
	}
	// Without this the connection is not used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	if report.BootID == "" {
		return nil, 0, fmt.Errorf("read the report of pod %s: it has no boot id", c.target.Pod)
	}
	return report, response.StatusCode, nil
}
