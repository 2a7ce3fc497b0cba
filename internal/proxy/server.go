package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	s3front "github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/proxy/tracing"
)

// Options are what a Server is started with.
type Options struct {
	Log    *slog.Logger
	Source Source

	// S3Address, AdminAddress and HealthAddress are HOST:PORT, port 0 for
	// any.
	S3Address, AdminAddress, HealthAddress string
	// Pprof serves Go's profiles under /debug/pprof/ of the admin port.
	Pprof bool
	// AccessLog says which requests are logged.
	AccessLog s3front.AccessLog
	// Tracing sends spans of requests; nil does not. Run ends it.
	Tracing *tracing.Tracing

	// OpenAdmin serves the admin port without TLS and token, and the probes
	// there instead of on HealthAddress. It is for loopback.
	OpenAdmin bool

	// Spool bounds what is kept of request bodies.
	Spool spool.Options
	// ShutdownDelay is how long, once Run's context has ended, the proxy goes
	// on as before but not ready, so that no new requests are sent to it.
	ShutdownDelay time.Duration
	// DrainTimeout is how long requests may go on after that.
	DrainTimeout time.Duration

	// open replaces the way stores are made, in tests.
	open opener
}

// Limits of connections. Bodies have no time limit of their own: they may be
// large and are followed by progress instead.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	adminTimeout      = time.Minute
	stopTimeout       = 5 * time.Second
)

// Server is a proxy: front, admin port and probes around one applier.
type Server struct {
	opts     Options
	hub      *hub
	gate     *gate
	metrics  *metrics
	health   *health
	applier  *applier
	drains   *drainWatch
	front    *s3front.Handler
	reporter *reporter
	ports    []*port
}

// port is one listening address.
type port struct {
	name     string
	listener net.Listener
	server   *http.Server
}

// idleProbe is how long after its cooldown a store that no client asks for is
// probed: what a proxy reports must come true without clients too.
const idleProbe = time.Second

// New makes a Server. It does not listen yet.
func New(opts Options) (*Server, error) {
	spooled, err := spool.New(opts.Spool)
	if err != nil {
		return nil, err
	}
	if opts.open == nil {
		opts.open = maker{scratch: spoolScratch{spooled}}.open
	}
	s := &Server{opts: opts, hub: newHub(), gate: &gate{}, metrics: newMetrics()}
	s.front = s3front.New(s3front.Options{
		Logger: opts.Log.With("log", "access"), AccessLog: opts.AccessLog, Metrics: s.metrics,
		Tracer: opts.Tracing.Tracer(), TraceContext: opts.Tracing.Extract,
	})
	s.applier = &applier{
		log: opts.Log, hub: s.hub, front: s.front, gate: s.gate, metrics: s.metrics, open: opts.open,
	}
	s.applier.engine = muxengine.Options{Spool: spooled, Events: s.applier.event, IdleProbe: idleProbe, Tracer: opts.Tracing.Tracer()}
	s.drains = newDrainWatch(opts.Log, s.hub, s.facts)
	s.applier.progressed = s.drains.kick
	s.health = &health{applied: s.applied}
	s.reporter = newReporter(s.hub, s.facts)
	s.metrics.watch(s.front, spooled, s.facts)
	return s, nil
}

// facts gathers what reports and metrics are made of.
func (s *Server) facts() facts {
	f := facts{
		served: s.applier.served.Load(), rejection: s.applier.rejection.Load(), retired: s.applier.retired.Load(),
		stores: s.drains.seen(), now: time.Now(),
	}
	if f.served != nil && f.served.mux != nil {
		f.stats = f.served.mux.Stats()
	}
	return f
}

func (s *Server) applied() (ok bool, why string) {
	if r := s.applier.rejection.Load(); r != nil {
		why = r.Message
	}
	return s.applier.served.Load() != nil, why
}

// Listen opens the ports, all or none.
func (s *Server) Listen() error {
	probes, admin := http.NewServeMux(), http.NewServeMux()
	admin.Handle("GET "+muxconfig.ReportPath, s.reporter)
	admin.Handle("GET /metrics", s.metrics.handler())
	if s.opts.Pprof {
		profiles(admin)
	}
	front := &http.Server{Handler: s.health.leave(s.gate.currentProtocol(s.front))}
	guarded := &http.Server{Handler: s.gate.authorized(admin), TLSConfig: s.gate.adminTLS(), WriteTimeout: adminTimeout}
	wanted := []struct {
		name, address string
		server        *http.Server
	}{
		{"s3", s.opts.S3Address, front},
		{"admin", s.opts.AdminAddress, guarded},
		{"health", s.opts.HealthAddress, &http.Server{Handler: probes, WriteTimeout: adminTimeout}},
	}
	if s.opts.OpenAdmin {
		s.health.register(admin)
		guarded.Handler, guarded.TLSConfig = admin, nil
		wanted = wanted[:2]
	} else {
		s.health.register(probes)
	}
	for _, w := range wanted {
		listener, err := net.Listen("tcp", w.address)
		if err != nil {
			s.closePorts()
			return fmt.Errorf("listen for %s: %w", w.name, err)
		}
		if w.name == "s3" {
			listener = frontListener{listener, s.gate}
		}
		w.server.ReadHeaderTimeout, w.server.IdleTimeout, w.server.MaxHeaderBytes = readHeaderTimeout, idleTimeout, maxHeaderBytes
		w.server.ErrorLog = slog.NewLogLogger(s.opts.Log.With("port", w.name).Handler(), slog.LevelDebug)
		s.ports = append(s.ports, &port{name: w.name, listener: listener, server: w.server})
	}
	return nil
}

// Addr returns the address of the port of that name ("s3", "admin", "health"),
// nil if there is none.
func (s *Server) Addr(name string) net.Addr {
	for _, p := range s.ports {
		if p.name == name {
			return p.listener.Addr()
		}
	}
	return nil
}

// Run serves until ctx ends, and then goes in order: not ready, a delay, no
// new requests on the front, an end for those that run. The source, the admin
// port and the engine work until the front is done, so that a proxy that stops
// still follows the document and reports. Listen comes first.
func (s *Server) Run(ctx context.Context) error {
	defer s.closePorts()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, len(s.ports)+1)
	var tasks sync.WaitGroup
	for _, p := range s.ports {
		s.opts.Log.Info("listening", "port", p.name, "address", p.listener.Addr().String())
		tasks.Go(func() { failed <- p.serve() })
	}
	tasks.Go(func() { s.applier.run(background) })
	tasks.Go(func() { s.drains.run(background) })
	tasks.Go(func() {
		if err := s.opts.Source.Run(background, s.applier.take); err != nil && background.Err() == nil {
			failed <- fmt.Errorf("watch the document: %w", err)
		}
	})

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stop(err == nil)
	stop()
	s.hub.close()
	s.shutPorts(stopTimeout)
	// A store can hang, in a file system for one; the process ends all the
	// same.
	ended := make(chan struct{})
	tasks.Go(s.endTracing)
	go func() {
		s.applier.close()
		tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(stopTimeout):
	}
	return err
}

// endTracing sends the spans of the requests that have ended.
func (s *Server) endTracing() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.opts.Tracing.Shutdown(ctx); err != nil {
		s.opts.Log.Warn("not all traces were sent", "error", err)
	}
}

// stop ends the front. Without grace there is no delay, as when a port failed.
func (s *Server) stop(grace bool) {
	s.health.stopping.Store(true)
	s.opts.Log.Info("stopping", "delay", s.opts.ShutdownDelay, "drain", s.opts.DrainTimeout)
	if grace {
		// Nothing ends this wait: a second signal ends the process.
		<-time.After(s.opts.ShutdownDelay)
	}
	for _, p := range s.ports {
		if p.name == "s3" {
			p.shut(s.opts.DrainTimeout)
		}
	}
}

func (s *Server) shutPorts(within time.Duration) {
	for _, p := range s.ports {
		p.shut(within)
	}
}

func (s *Server) closePorts() {
	for _, p := range s.ports {
		_ = p.server.Close()
		_ = p.listener.Close()
	}
}

func (p *port) serve() error {
	var err error
	if p.server.TLSConfig != nil {
		err = p.server.ServeTLS(p.listener, "", "")
	} else {
		err = p.server.Serve(p.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", p.name, err)
}

// shut lets requests finish, and cuts those that take longer.
func (p *port) shut(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
}
