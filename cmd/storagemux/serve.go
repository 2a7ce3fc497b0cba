package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/suaveplan/storagemux/internal/collector"
	"github.com/suaveplan/storagemux/internal/proxy/tracing"
	"github.com/suaveplan/storagemux/internal/serve"
	"github.com/suaveplan/storagemux/internal/version"
)

var serveCommand = command{
	name:    "serve",
	summary: "serve one mux from manifests, without a cluster",
	run:     runServe,
}

func runServe(ctx context.Context, std stdio, args []string) error {
	collector.Ease()
	flags := newFlags("serve")
	opts := serve.Options{Out: std.out}
	level := logFlag(flags)
	flags.StringVar(&opts.Manifests, "manifests", "", "file or folder of manifests; changes are followed")
	flags.StringVar(&opts.Mux, "mux", "", "StorageMux to serve, NAME or NAMESPACE/NAME; needed where several run proxies and none of those contains the others")
	flags.StringVar(&opts.S3Address, "s3-address", "127.0.0.1:9000", "address of the S3 port")
	flags.StringVar(&opts.AdminAddress, "admin-address", "127.0.0.1:9090", "loopback address of report, metrics and probes")
	flags.DurationVar(&opts.DrainTimeout, "drain-timeout", 30*time.Second, "how long requests may take to end after a signal")
	spoolFlags(flags, &opts.Spool)
	observeFlags(flags, &opts.AccessLog, &opts.Pprof)
	if err := parseFlags(flags, args, std); err != nil {
		return err
	}
	if opts.Manifests == "" {
		return usageError{errors.New("--manifests must be set")}
	}
	if opts.Spool.Dir == "" {
		dir, err := os.MkdirTemp("", "storagemux-spool-*")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		opts.Spool.Dir = dir
	}
	opts.Log = slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: level}))
	var err error
	if opts.Tracing, err = tracing.New(ctx, os.Getenv, version.String(), opts.Log); err != nil {
		return usageError{err}
	}
	server, err := serve.New(opts)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
