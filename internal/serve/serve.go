package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/suaveplan/storagemux/internal/proxy"
	"github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/proxy/tracing"
)

// Options are what serve is started with.
type Options struct {
	// Manifests is a file or a folder.
	Manifests string
	// Mux is NAME or NAMESPACE/NAME; it may be empty where there is one, only
	// one runs a proxy, or all others are in one.
	Mux string
	// S3Address and AdminAddress are HOST:PORT. The admin port has neither
	// TLS nor a token, so that its host must be loopback.
	S3Address, AdminAddress string
	Spool                   spool.Options
	DrainTimeout            time.Duration
	// Pprof, AccessLog and Tracing are those of proxy.Options.
	Pprof     bool
	AccessLog s3.AccessLog
	Tracing   *tracing.Tracing
	Log       *slog.Logger
	// Out gets one line when all is ready to be used.
	Out io.Writer
}

// Serve is a mux that is served from manifests.
type Serve struct {
	opts   Options
	source *source
	server *proxy.Server
}

// New reads the manifests and opens the ports. Its error has a method
// ExitCode where the user has to mend the manifests or the options.
func New(opts Options) (*Serve, error) {
	if err := loopback(opts.AdminAddress); err != nil {
		return nil, err
	}
	source, err := newSource(opts.Manifests, opts.Mux, opts.Log)
	if err != nil {
		return nil, err
	}
	server, err := proxy.New(proxy.Options{
		Log: opts.Log, Source: source,
		S3Address: opts.S3Address, AdminAddress: opts.AdminAddress, OpenAdmin: true,
		Spool: opts.Spool, DrainTimeout: opts.DrainTimeout,
		Pprof: opts.Pprof, AccessLog: opts.AccessLog, Tracing: opts.Tracing,
	})
	if err != nil {
		return nil, err
	}
	if err := server.Listen(); err != nil {
		return nil, err
	}
	return &Serve{opts, source, server}, nil
}

// Addr is that of proxy.Server.
func (s *Serve) Addr(name string) net.Addr { return s.server.Addr(name) }

// Run serves until ctx ends.
func (s *Serve) Run(ctx context.Context) error {
	scheme := "http"
	if s.source.document.Frontend.TLS != nil {
		scheme = "https"
	}
	fmt.Fprintf(s.opts.Out, "serving StorageMux %s at %s://%s as bucket %s; report and metrics at http://%s\n",
		s.source.key, scheme, s.Addr("s3"), s.source.document.Frontend.Bucket, s.Addr("admin"))
	return s.server.Run(ctx)
}

func loopback(address string) error {
	problem := &Problem{Object: "--admin-address", Rule: "must be HOST:PORT of this machine's loopback, such as 127.0.0.1:9090, because the admin port asks for no token here"}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return problem
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return problem
	}
	return nil
}
