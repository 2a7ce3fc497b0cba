package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/render"
)

// reporter is the name under which events are recorded.
const reporter = "storagemux-operator"

// Figures of statuses that only count: at most so often for one object, and so
// many a second for all.
const (
	figuresInterval  = 15 * time.Second
	figuresPerSecond = 10
)

// After a change of state the other proxies of a mux mostly tell the same at
// once: what they say goes into one write. Muxes go first, as a store that many
// use is one of many things that changed.
const (
	gatherForMux     = 20 * time.Millisecond
	gatherForBackend = 100 * time.Millisecond
)

// Backoff of passes that failed.
const (
	minRetry = 50 * time.Millisecond
	maxRetry = time.Minute
)

// Setup adds the reconcilers and the fleet to mgr.
func Setup(ctx context.Context, mgr manager.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	permitted := labels.Everything()
	if o.RequireSecretLabel != "" {
		selector, err := labels.Parse(o.RequireSecretLabel)
		if err != nil {
			return fmt.Errorf("parse the label that Secrets must have, %q: %w", o.RequireSecretLabel, err)
		}
		permitted = selector
	}
	s := &shared{
		client: mgr.GetClient(), live: mgr.GetAPIReader(),
		documents:  &documents{cached: mgr.GetClient(), live: mgr.GetAPIReader(), writer: mgr.GetClient()},
		references: &references{cached: mgr.GetClient(), live: mgr.GetAPIReader(), permitted: permitted},
		applied:    &appliedChildren{},
		leadership: &leadership{},
		upgrades:   &upgrades{limit: o.MaxUpgradingMuxes},
		graph:      graph{mgr.GetClient()},
		budget:     newFigureBudget(figuresInterval, figuresPerSecond),
		writes:     &ownWrites{},
		events:     eventSink{mgr.GetEventRecorder(reporter)},
		render:     render.Options{ProxyImage: o.ProxyImage, OperatorNamespace: o.Namespace},
		now:        time.Now,
		muxes:      &waker{}, backends: &waker{},
	}
	s.turns = &turns{limit: max(1, o.MaxConcurrentReconciles/4), wake: func(key objectKey) { s.backends.wake(key.NamespacedName) }}
	s.render.ProxyBuild = render.ProxyBuild(s.render)
	if o.LeaderElection {
		s.leadership.live = mgr.GetAPIReader()
		s.leadership.lease = types.NamespacedName{Namespace: o.Namespace, Name: leaseName}
	}
	told := &proxyEvents{sink: s.events}
	s.fleet = fleet.New(fleet.Options{
		Grace: o.ReportGrace, Dial: o.DialProxy, Log: mgr.GetLogger().WithName("fleet"),
		Changed: s.reported, Happened: told.happened,
	})
	if err := mgr.Add(s.fleet); err != nil {
		return fmt.Errorf("add the fleet to the manager: %w", err)
	}
	if err := (&muxReconciler{s}).setup(mgr, o); err != nil {
		return fmt.Errorf("set up the controller of StorageMuxes: %w", err)
	}
	if err := (&backendReconciler{s}).setup(mgr, o); err != nil {
		return fmt.Errorf("set up the controller of StorageBackends: %w", err)
	}
	return nil
}

// reported is fleet.Options.Changed. Figures alone wait until they may be
// written anyway.
func (s *shared) reported(c fleet.Change) {
	wake := func(w *waker, kind, name string) {
		key := types.NamespacedName{Namespace: c.Mux.Namespace, Name: name}
		wait := gatherForMux
		if kind == v1alpha1.KindStorageBackend {
			wait = gatherForBackend
		}
		if c.FiguresOnly {
			wait = max(time.Second, s.budget.due(objectKey{kind, key}, s.now()))
		}
		w.wakeAfter(key, wait)
	}
	wake(s.muxes, v1alpha1.KindStorageMux, c.Mux.Name)
	for _, name := range c.Nested {
		wake(s.muxes, v1alpha1.KindStorageMux, name)
	}
	for _, name := range c.Backends {
		wake(s.backends, v1alpha1.KindStorageBackend, name)
	}
}

func (r *muxReconciler) setup(mgr manager.Manager, o Options) error {
	b := builder.ControllerManagedBy(mgr).
		For(&v1alpha1.StorageMux{}, builder.WithPredicates(intentChanged)).
		Watches(&v1alpha1.StorageMux{}, handler.EnqueueRequestsFromMapFunc(r.muxesAround), builder.WithPredicates(intentChanged)).
		Watches(&v1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.muxesOfBackend), builder.WithPredicates(intentChanged)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(muxOfPod)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return append(muxOfChild(ctx, o), r.graph.muxesNaming(ctx, indexSecrets, o)...)
		})).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.graph.muxesNaming(ctx, indexConfigMaps, o)
		})).
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.graph.muxesNaming(ctx, indexClaims, o)
		})).
		WatchesRawSource(r.muxes.source()).
		WithOptions(controllerOptions(o))
	for _, child := range childKinds {
		b = b.WatchesMetadata(child, handler.EnqueueRequestsFromMapFunc(muxOfChild))
	}
	return b.Complete(r)
}

func (r *backendReconciler) setup(mgr manager.Manager, o Options) error {
	naming := func(index string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.graph.backendsNaming(ctx, index, o)
		})
	}
	return builder.ControllerManagedBy(mgr).
		For(&v1alpha1.StorageBackend{}, builder.WithPredicates(intentChanged)).
		Watches(&v1alpha1.StorageMux{}, handler.EnqueueRequestsFromMapFunc(r.backendsOfMux), builder.WithPredicates(intentChanged)).
		Watches(&v1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.backendsAround), builder.WithPredicates(intentChanged)).
		WatchesMetadata(&corev1.Secret{}, naming(indexSecrets)).
		WatchesMetadata(&corev1.ConfigMap{}, naming(indexConfigMaps)).
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, naming(indexClaims)).
		WatchesRawSource(r.backends.source()).
		WithOptions(controllerOptions(o)).
		Complete(r)
}

func controllerOptions(o Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		SkipNameValidation:      &o.manyManagers,
		// A manager that waits for the lease keeps its caches filled.
		EnableWarmup: ptr.To(true),
		RateLimiter:  workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
	}
}

// childKinds are the kinds of a mux's children, apart from Secrets, which are
// watched for other reasons too.
var childKinds = []client.Object{
	&appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
}

// intentChanged leaves out changes of status, which are our own.
var intentChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!reflect.DeepEqual(before.GetAnnotations(), after.GetAnnotations())
}}

// muxesOfBackend are the muxes that contain a StorageBackend, and those whose
// proxies still have it.
func (r *muxReconciler) muxesOfBackend(ctx context.Context, o client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(o)
	names, err := r.graph.users(ctx, key)
	if err != nil {
		return nil // the cache ends with the process
	}
	return requests(o.GetNamespace(), union(names, r.fleet.Holders(string(o.GetUID()))))
}

// muxesAround are the muxes that contain a mux, those whose proxies still have
// it, and those that it contains.
func (r *muxReconciler) muxesAround(ctx context.Context, o client.Object) []reconcile.Request {
	mux := o.(*v1alpha1.StorageMux)
	above, err := r.graph.parents(ctx, mux)
	if err != nil {
		return nil // the cache ends with the process
	}
	below, _, err := r.graph.below(ctx, mux)
	if err != nil {
		return nil
	}
	return requests(o.GetNamespace(), union(append(above, below...), r.fleet.Holders(string(o.GetUID()))))
}

// backendsAround are those that a StorageBackend's candidates are, and those a
// candidate of which it is.
func (r *backendReconciler) backendsAround(ctx context.Context, o client.Object) []reconcile.Request {
	b := o.(*v1alpha1.StorageBackend)
	below, _, buckets := render.References(b)
	for _, bucket := range buckets {
		names, err := r.graph.backendsWith(ctx, b.Namespace, indexBucket, bucket)
		if err != nil {
			return nil // the cache ends with the process
		}
		below = append(below, names...)
	}
	above, err := r.graph.fallbacksWith(ctx, b.Namespace, b.Name)
	if err != nil {
		return nil
	}
	return requests(b.Namespace, union(below, above))
}

func (r *backendReconciler) backendsOfMux(ctx context.Context, o client.Object) []reconcile.Request {
	_, backends, err := r.graph.below(ctx, o.(*v1alpha1.StorageMux))
	if err != nil {
		return nil // the cache ends with the process
	}
	return requests(o.GetNamespace(), backends)
}

func muxOfPod(_ context.Context, o client.Object) []reconcile.Request {
	if mux := o.GetLabels()[v1alpha1.LabelMux]; mux != "" {
		return requests(o.GetNamespace(), []string{mux})
	}
	return nil
}

// muxOfChild goes by the name, so that the end of somebody else's object is
// noticed too.
func muxOfChild(_ context.Context, o client.Object) []reconcile.Request {
	for _, mux := range childSuffixes {
		if name, ok := strings.CutSuffix(o.GetName(), mux); ok && name != "" {
			return requests(o.GetNamespace(), []string{name})
		}
	}
	return nil
}

var childSuffixes = []string{render.ChildName(""), render.ConfigSecretName(""), render.ConnectionSecretName("")}
