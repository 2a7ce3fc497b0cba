package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// sizes is how much of everything there is.
type sizes struct {
	muxes, backendsPerMux, proxiesPerMux int
	// changes is how often one member is changed, flaps how many members go
	// down at once.
	changes, flaps int
	moving, idle   time.Duration
	// until is the phase after which to end, without a report; "" for all.
	until string
	// machine is what all runs on.
	machine string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context) error {
	s := sizes{machine: machine()}
	var binary, output, profiles string
	flag.IntVar(&s.muxes, "muxes", 1000, "StorageMuxes")
	flag.IntVar(&s.backendsPerMux, "backends-per-mux", 5, "StorageBackends in each")
	flag.IntVar(&s.proxiesPerMux, "proxies-per-mux", 2, "simulated proxies of each")
	flag.IntVar(&s.changes, "changes", 100, "changes of one member, one after the other")
	flag.IntVar(&s.flaps, "flaps", 200, "members that go down at once")
	flag.DurationVar(&s.moving, "moving", 90*time.Second, "for how long figures move everywhere")
	flag.DurationVar(&s.idle, "idle", 10*time.Minute, "for how long nothing happens")
	flag.StringVar(&s.until, "until", "", "end after this phase, without a report, such as \"members flap\"")
	flag.StringVar(&binary, "binary", "bin/storagemux", "the operator")
	flag.StringVar(&output, "output", "docs/scale.md", "where the report goes")
	flag.StringVar(&profiles, "profiles", "", "folder for CPU profiles of each phase, of this process with the proxies, the operator and the API server")
	flag.Parse()
	if s.flaps > s.muxes {
		return errors.New("there must be as many muxes as members that go down: each is in another one")
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(io.Discard, nil))
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	env := &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	// It is not the disk that is measured.
	env.ControlPlane.Etcd = &envtest.Etcd{}
	env.ControlPlane.Etcd.Configure().Append("unsafe-no-fsync", "true")
	// Each mux has a Service.
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	if profiles != "" {
		env.ControlPlane.GetAPIServer().Configure().Set("profiling", "true")
	}
	config, err := env.Start()
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = env.Stop() }()
	config.QPS, config.Burst = 2000, 4000
	dir, err := os.MkdirTemp("", "storagemux-scale")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		return err
	}
	b, err := newBench(ctx, config, s, operatorFiles{binary: binary, kubeconfig: kubeconfig, log: filepath.Join(dir, "operator.log")})
	if err != nil {
		return err
	}
	defer b.close()
	b.profiles = profiles
	if err := b.run(ctx); errors.Is(err, errEndedEarly) {
		return nil
	} else if err != nil {
		return err
	}
	report := b.report.markdown(s)
	fmt.Print(report)
	return os.WriteFile(output, []byte(report), 0o644)
}
