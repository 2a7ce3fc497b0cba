package controller

import (
	"context"
	"fmt"
	"net"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=storagemux-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=storagemux-system,resources=events,verbs=create;patch

// leaseName is the lease of the leader.
const leaseName = "storagemux-operator"

// leaseRetry is how often others try to become leader, and with jitter up to
// 2.2 times that: a lease that is released is taken within two seconds.
const leaseRetry = 800 * time.Millisecond

// Options are the settings of the operator.
type Options struct {
	// ProxyImage is the image of every proxy.
	ProxyImage string
	// Namespace is the operator's own.
	Namespace string
	// WatchNamespaces are those whose objects are reconciled; none is all.
	WatchNamespaces []string
	// RequireSecretLabel is a label selector that the Secrets which specs
	// name must match; empty is all of them.
	RequireSecretLabel string

	MetricsAddress, HealthAddress string
	// PprofAddress is where profiles of the operator are served, to whoever
	// reaches it; "" or "0" for nowhere.
	PprofAddress string
	// SecureMetrics serves metrics over TLS to callers that the API server
	// knows and permits.
	SecureMetrics  bool
	LeaderElection bool
	// MaxConcurrentReconciles is per kind.
	MaxConcurrentReconciles int
	// MaxUpgradingMuxes is how many muxes may have their proxies replaced at
	// the same time when this operator brings another build of them; at
	// least 1.
	MaxUpgradingMuxes int
	// ReportGrace is how long the last report of a proxy that does not
	// answer counts.
	ReportGrace time.Duration

	// DialProxy replaces the connection to a proxy in tests.
	DialProxy func(ctx context.Context, network, address string) (net.Conn, error)
	// manyManagers lets a test run several managers in one process.
	manyManagers bool
}

// NewScheme knows all kinds that the operator handles.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// NewManager returns a manager with everything set up, to be started.
func NewManager(ctx context.Context, config *rest.Config, o Options) (manager.Manager, error) {
	if o.MaxUpgradingMuxes < 1 {
		return nil, fmt.Errorf("the number of muxes that are upgraded at a time is %d and must be at least 1", o.MaxUpgradingMuxes)
	}
	stop, retry := 10*time.Second, leaseRetry
	metrics := metricsserver.Options{BindAddress: o.MetricsAddress}
	if o.SecureMetrics {
		metrics.SecureServing = true
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:                        NewScheme(),
		Cache:                         cacheOptions(o),
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.HealthAddress,
		PprofBindAddress:              o.PprofAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   &retry,
		GracefulShutdownTimeout:       &stop,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add the health check: %w", err)
	}
	caches := &syncedCaches{mgr: mgr}
	if err := mgr.AddReadyzCheck("caches", caches.check); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	if err := mgr.Add(caches); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	return mgr, Setup(ctx, mgr, o)
}

// cacheOptions keep in memory what is needed: of children only those of ours,
// of Secrets and the like only metadata, and of pods what is looked at.
func cacheOptions(o Options) cache.Options {
	ours := cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}),
	}
	pods := ours
	pods.Transform = stripPod
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   pods,
			&corev1.Service{}:               ours,
			&corev1.ServiceAccount{}:        ours,
			&appsv1.Deployment{}:            ours,
			&rbacv1.Role{}:                  ours,
			&rbacv1.RoleBinding{}:           ours,
			&policyv1.PodDisruptionBudget{}: ours,
			&networkingv1.NetworkPolicy{}:   ours,
			&corev1.Secret{}:                {Transform: stripAnnotations},
			&corev1.ConfigMap{}:             {Transform: stripAnnotations},
		},
	}
	for _, namespace := range o.WatchNamespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// stripPod keeps what proxiesOf, fleetTargets, replaced and podTrouble read.
func stripPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	pod.ManagedFields = nil
	build := pod.Annotations[v1alpha1.AnnotationProxyBuild]
	pod.Annotations = nil
	if build != "" {
		pod.Annotations = map[string]string{v1alpha1.AnnotationProxyBuild: build}
	}
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	kept := corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, StartTime: pod.Status.StartTime}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			kept.Conditions = append(kept.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		kept.ContainerStatuses = append(kept.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: c.State, LastTerminationState: c.LastTerminationState,
		})
	}
	pod.Status = kept
	return pod, nil
}

// stripAnnotations drops what kubectl leaves in annotations: the content of the
// object as it was applied.
func stripAnnotations(in any) (any, error) {
	if o, ok := in.(metav1.Object); ok {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
	}
	return in, nil
}
