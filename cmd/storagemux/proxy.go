package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/suaveplan/storagemux/internal/collector"
	"github.com/suaveplan/storagemux/internal/proxy"
	"github.com/suaveplan/storagemux/internal/proxy/configsource"
	"github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/proxy/tracing"
	"github.com/suaveplan/storagemux/internal/version"
)

var proxyCommand = command{
	name:    "proxy",
	summary: "serve one mux in a cluster; the operator starts it",
	run:     runProxy,
}

func runProxy(ctx context.Context, std stdio, args []string) error {
	collector.Ease()
	flags := newFlags("proxy")
	source := configsource.Options{}
	opts := proxy.Options{}
	level := logFlag(flags)
	flags.StringVar(&source.Namespace, "namespace", "", "namespace of the config Secret")
	flags.StringVar(&source.Name, "secret-name", "", "name of the config Secret")
	flags.StringVar(&source.MountPath, "mount-path", "/etc/storagemux/config", "folder in which the config Secret is mounted")
	flags.StringVar(&source.StateDir, "state-dir", "/var/run/storagemux", "folder in memory for the last document that was served")
	flags.StringVar(&opts.S3Address, "s3-address", ":8080", "address of the S3 port")
	flags.StringVar(&opts.AdminAddress, "admin-address", ":8081", "address of the admin port")
	flags.StringVar(&opts.HealthAddress, "health-address", ":8082", "address of the probes")
	flags.DurationVar(&opts.ShutdownDelay, "shutdown-delay", 5*time.Second, "how long to go on, not ready, before connections are closed")
	flags.DurationVar(&opts.DrainTimeout, "drain-timeout", 10*time.Minute, "how long requests may take to end after that")
	spoolFlags(flags, &opts.Spool)
	observeFlags(flags, &opts.AccessLog, &opts.Pprof)
	if err := parseFlags(flags, args, std); err != nil {
		return err
	}
	if source.Namespace == "" || source.Name == "" {
		return usageError{errors.New("--namespace and --secret-name must be set")}
	}
	log := slog.New(slog.NewJSONHandler(std.err, &slog.HandlerOptions{Level: level}))
	client, err := inClusterClient()
	if err != nil {
		return err
	}
	if opts.Tracing, err = tracing.New(ctx, os.Getenv, version.String(), log); err != nil {
		return usageError{err}
	}
	source.Client, source.Log = client, log
	opts.Source, opts.Log = configsource.New(source), log
	server, err := proxy.New(opts)
	if err != nil {
		return err
	}
	if err := server.Listen(); err != nil {
		return err
	}
	return server.Run(ctx)
}

// inClusterClient returns a client with the pod's own identity.
func inClusterClient() (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server from inside a pod: %w", err)
	}
	config.UserAgent = "storagemux-proxy/" + version.String()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the API server: %w", err)
	}
	return client, nil
}

func logFlag(flags *flag.FlagSet) *slog.LevelVar {
	level := &slog.LevelVar{}
	flags.TextVar(level, "log-level", level, "least level that is logged: DEBUG, INFO, WARN or ERROR; at DEBUG each request is")
	return level
}

func spoolFlags(flags *flag.FlagSet, opts *spool.Options) {
	opts.Memory, opts.Disk = 64<<20, 2<<30
	flags.StringVar(&opts.Dir, "spool-dir", "", "folder for request bodies that may have to be sent again; empty for none")
	flags.Func("spool-memory", "most memory for such bodies (default 64Mi)", bytesValue(&opts.Memory))
	flags.Func("spool-disk", "most disk for such bodies (default 2Gi)", bytesValue(&opts.Disk))
}

// observeFlags are about what a proxy shows of its work besides its metrics.
func observeFlags(flags *flag.FlagSet, accessLog *s3.AccessLog, pprof *bool) {
	flags.TextVar(accessLog, "access-log", s3.AccessLogErrors,
		"requests that are logged: errors (at WARN, all others at DEBUG), all (those others at INFO) or off")
	flags.BoolVar(pprof, "pprof", false, "serve Go's profiles under /debug/pprof/ of the admin port")
}

// bytesValue parses a number of bytes such as 64Mi.
func bytesValue(into *int64) func(string) error {
	return func(text string) error {
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 {
			return errors.New("must be a number of bytes such as 64Mi")
		}
		*into = quantity.Value()
		return nil
	}
}
