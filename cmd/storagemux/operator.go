package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/suaveplan/storagemux/internal/controller"
	"github.com/suaveplan/storagemux/internal/version"
)

var operatorCommand = command{
	name:    "operator",
	summary: "run the operator, in a cluster or with a kubeconfig",
	run:     runOperator,
}

func runOperator(ctx context.Context, std stdio, args []string) error {
	flags := newFlags("operator")
	opts := controller.Options{}
	var kubeconfig, namespaces string
	var qps float64
	var burst int
	var releaseFinalizers bool
	level := logFlag(flags)
	flags.StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "file that says how to reach the cluster; empty: as the pod that this is")
	flags.StringVar(&opts.Namespace, "namespace", "", "the operator's own namespace, for its lease (default: the pod's, or storagemux-system)")
	flags.StringVar(&namespaces, "namespaces", "", "comma-separated namespaces to watch; empty for all")
	flags.StringVar(&opts.ProxyImage, "proxy-image", "", "image of the proxies, which is this binary's own")
	flags.StringVar(&opts.RequireSecretLabel, "require-secret-label", "", "label selector that Secrets must match for specs to name them; empty for all Secrets")
	flags.StringVar(&opts.MetricsAddress, "metrics-bind-address", "0", "address of the metrics; 0 for none")
	flags.BoolVar(&opts.SecureMetrics, "metrics-secure", true, "serve metrics over HTTPS to callers whose token may get /metrics")
	flags.StringVar(&opts.HealthAddress, "health-probe-bind-address", "0", "address of the probes; 0 for none")
	flags.StringVar(&opts.PprofAddress, "pprof-bind-address", "0", "address of profiles, to whoever reaches it, such as 127.0.0.1:6060; 0 for none")
	flags.BoolVar(&opts.LeaderElection, "leader-elect", false, "work only while holding the lease, so that several operators can run")
	flags.IntVar(&opts.MaxConcurrentReconciles, "max-concurrent-reconciles", 4, "how many objects of each kind are worked on at once")
	flags.IntVar(&opts.MaxUpgradingMuxes, "max-upgrading-muxes", 3, "how many muxes may have their proxies replaced at once after an upgrade of the operator")
	flags.DurationVar(&opts.ReportGrace, "report-grace", 30*time.Second, "how long the last report of a proxy that does not answer counts")
	flags.Float64Var(&qps, "kube-api-qps", 50, "requests a second to the API server")
	flags.IntVar(&burst, "kube-api-burst", 100, "requests to the API server in a burst")
	flags.BoolVar(&releaseFinalizers, "release-finalizers", false, "before an uninstall: free all StorageBackends and StorageMuxes that wait for this operator, and end")
	if err := parseFlags(flags, args, std); err != nil {
		return err
	}
	if namespaces != "" {
		opts.WatchNamespaces = strings.Split(namespaces, ",")
	}
	config, err := clusterConfig(kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = float32(qps), burst
	config.UserAgent = "storagemux-operator/" + version.String()
	if releaseFinalizers {
		return controller.ReleaseFinalizers(ctx, config, opts.WatchNamespaces, func(kind, namespace, name string) {
			fmt.Fprintf(std.out, "freed %s %s/%s\n", kind, namespace, name)
		})
	}
	if opts.ProxyImage == "" {
		return usageError{errors.New("--proxy-image must be set")}
	}
	if opts.MaxUpgradingMuxes < 1 {
		return usageError{errors.New("--max-upgrading-muxes must be at least 1")}
	}
	if opts.Namespace == "" {
		opts.Namespace = ownNamespace()
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(std.err, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	mgr, err := controller.NewManager(ctx, config, opts)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// It holds much, the state of all proxies above all, and makes little
		// that is new.
		debug.SetGCPercent(50)
	}
	log.Info("starting", "version", version.String(), "proxyImage", opts.ProxyImage)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

// clusterConfig says how to reach the API server.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, usageError{fmt.Errorf("find the API server, as there is no --kubeconfig: %w", err)}
	}
	return config, nil
}

// ownNamespace is the namespace of the pod that this is.
func ownNamespace() string {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		return name
	}
	return "storagemux-system"
}
