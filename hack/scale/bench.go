package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller"
	"github.com/suaveplan/storagemux/internal/controller/fleet/fleettest"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

const (
	namespace    = "scale"
	sharedSecret = "shared"
	// patience is for whatever the operator should do by itself.
	patience = 30 * time.Minute
)

// errEndedEarly is for a run that was to do only a part of the phases.
var errEndedEarly = errors.New("ended after the phase that was named")

// bench runs the phases, each on what the ones before it left.
type bench struct {
	sizes    sizes
	files    operatorFiles
	cluster  client.Client
	watcher  *watcher
	proxies  *proxies
	operator *operator
	names    []string
	report   report

	// profiles is the folder for CPU profiles; "" for none.
	profiles string
	config   *rest.Config

	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newBench(ctx context.Context, config *rest.Config, s sizes, files operatorFiles) (*bench, error) {
	cluster, err := client.New(config, client.Options{Scheme: controller.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	b := &bench{sizes: s, files: files, cluster: cluster, config: config}
	ctx, b.cancel = context.WithCancel(ctx)
	b.proxies = &proxies{cluster: cluster, perMux: s.proxiesPerMux, work: make(chan *corev1.Secret, 64), byMux: map[string]*muxProxies{}}
	for range 16 {
		b.ended.Go(func() { b.proxies.run(ctx) })
	}
	if b.watcher, err = watch(ctx, config, b.proxies.take); err != nil {
		b.close()
		return nil, err
	}
	for i := range s.muxes {
		b.names = append(b.names, fmt.Sprintf("mux-%04d", i))
	}
	return b, nil
}

func (b *bench) close() {
	if b.operator != nil {
		b.operator.stop()
	}
	b.cancel()
	b.ended.Wait()
	b.proxies.stop()
}

func (b *bench) run(ctx context.Context) error {
	r := &b.report
	text := func(format string, figures ...any) func() string {
		return func() string { return fmt.Sprintf(format, figures...) }
	}
	for _, phase := range []struct {
		name    string
		run     func(context.Context) error
		figures func() string
	}{
		{"create the objects", b.create, text("")},
		{"first start", b.firstStart, text("Programmed: %s", &r.firstStart)},
		{"one member changes", b.change, text("acknowledged: %s", &r.change)},
		{"rotate the shared credential", b.rotate, text("taken up: %s; acknowledged: %s", &r.rotateTaken, &r.rotate)},
		{"members flap", b.flap, text("down: %s; up: %s", &r.flapDown, &r.flapUp)},
		{"restart", b.restart, func() string {
			return fmt.Sprintf("every proxy asked after %s, writes: %d", r.restart, r.restartWrites)
		}},
		{"idle", b.idle, func() string { return fmt.Sprintf("writes: %d", r.idleWrites) }},
		// The last, since it leaves minutes of writes that wait for their turn.
		{"figures move", b.move, func() string { return fmt.Sprintf("writes a second: %.1f", r.movingWrites) }},
	} {
		began, before := time.Now(), processorTimes(b.operator)
		asked, err := b.serverRequests(ctx)
		if err != nil {
			return err
		}
		profiled := b.profile(ctx, phase.name)
		err = phase.run(ctx)
		profiled()
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		b.proxies.mu.Lock()
		failed := b.proxies.failed
		b.proxies.mu.Unlock()
		if failed != nil {
			return fmt.Errorf("%s: a simulated proxy: %w", phase.name, failed)
		}
		took := time.Since(began)
		now, err := b.serverRequests(ctx)
		if err != nil {
			return err
		}
		cost := phaseCost{phase.name, took, processorTimes(b.operator).since(before, took), now.since(asked)}
		b.report.costs = append(b.report.costs, cost)
		fmt.Printf("%s: done in %s; cores: %s\n", phase.name, took.Round(time.Millisecond), cost.cores)
		if figures := phase.figures(); figures != "" {
			fmt.Printf("  %s\n", figures)
		}
		fmt.Printf("  requests to the API server: %s\n", cost.requests)
		if phase.name == b.sizes.until {
			return errEndedEarly
		}
	}
	return nil
}

// create makes what users would, before any operator runs.
func (b *bench) create(ctx context.Context) error {
	if err := b.cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := b.cluster.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sharedSecret}, StringData: credentials("first"),
	}); err != nil {
		return err
	}
	return parallel(16, b.names, func(name string) error {
		m := &v1alpha1.StorageMux{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1alpha1.StorageMuxSpec{Mode: v1alpha1.ModeFailover, Keyspace: v1alpha1.KeyspaceReplicated},
		}
		for i := range b.sizes.backendsPerMux {
			store := fmt.Sprintf("%s-%d", name, i)
			m.Spec.Backends = append(m.Spec.Backends, v1alpha1.Member{Name: store})
			if err := b.cluster.Create(ctx, &v1alpha1.StorageBackend{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: store},
				Spec: v1alpha1.StorageBackendSpec{S3: &v1alpha1.S3Backend{
					Endpoint: "https://s3.example.com", Region: "eu-central-1", Bucket: "bucket-" + store,
					Auth: v1alpha1.BackendAuth{Type: v1alpha1.AuthTypeSecret, SecretRef: &v1alpha1.SecretReference{Name: sharedSecret}},
				}},
			}); err != nil {
				return err
			}
		}
		return b.cluster.Create(ctx, m)
	})
}

func credentials(key string) map[string]string {
	return map[string]string{v1alpha1.SecretKeyAWSAccessKeyID: "AKIDSCALE", v1alpha1.SecretKeyAWSSecretAccessKey: key}
}

func (b *bench) programmed(m *v1alpha1.StorageMux) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionProgrammed) &&
		int(m.Status.ProgrammedReplicas) == b.sizes.proxiesPerMux
}

// firstStart measures from the operator's start until every mux is Programmed.
func (b *bench) firstStart(ctx context.Context) error {
	all := b.watcher.expect(b.names, b.programmed)
	began := time.Now()
	var err error
	if b.operator, err = startOperator(ctx, b.files); err != nil {
		return err
	}
	at, err := b.watcher.wait(ctx, all, patience)
	if err != nil {
		return err
	}
	b.report.firstStart = spread(began, at)
	return b.measure(&b.report.afterStart)
}

// change measures from an edit of one StorageBackend until the status of its
// mux says that every proxy acknowledged it.
func (b *bench) change(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	for i := range b.sizes.changes {
		name := b.names[rand.N(len(b.names))]
		before := b.watcher.revision(name)
		acknowledged := b.watcher.expect([]string{name}, func(m *v1alpha1.StorageMux) bool {
			return m.Status.Revision > before && b.programmed(m)
		})
		store := &v1alpha1.StorageBackend{}
		if err := b.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-0"}, store); err != nil {
			return err
		}
		patched := store.DeepCopy()
		limit := int32(100 + i)
		patched.Spec.MaxInFlight = &limit
		if err := b.cluster.Patch(ctx, patched, client.MergeFrom(store)); err != nil {
			return err
		}
		began := time.Now()
		at, err := b.watcher.wait(ctx, acknowledged, patience)
		if err != nil {
			return err
		}
		b.report.change = append(b.report.change, at[name].Sub(began))
	}
	return nil
}

// rotate measures from a change of the Secret that every backend names until
// each mux's proxies have acknowledged it.
func (b *bench) rotate(ctx context.Context) error {
	before := map[string]int64{}
	for _, name := range b.names {
		before[name] = b.watcher.revision(name)
	}
	acknowledged := b.watcher.expect(b.names, func(m *v1alpha1.StorageMux) bool {
		return m.Status.Revision > before[m.Name] && b.programmed(m)
	})
	secret := &corev1.Secret{}
	if err := b.cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sharedSecret}, secret); err != nil {
		return err
	}
	secret.StringData = credentials("second")
	if err := b.cluster.Update(ctx, secret); err != nil {
		return err
	}
	began := time.Now()
	at, err := b.watcher.wait(ctx, acknowledged, patience)
	if err != nil {
		return err
	}
	b.report.rotate = spread(began, at)
	taken := map[string]time.Time{}
	for _, name := range b.names {
		taken[name] = b.proxies.of(name).at
	}
	b.report.rotateTaken = spread(began, taken)
	return b.measure(&b.report.afterRotation)
}

// flap measures from members going down in all proxies of their muxes until
// status says so, and the same for their way back.
func (b *bench) flap(ctx context.Context) error {
	names := b.names[:b.sizes.flaps]
	if err := b.settle(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		state muxconfig.MemberState
		into  *durations
	}{{muxconfig.StateDown, &b.report.flapDown}, {muxconfig.StateUp, &b.report.flapUp}} {
		seen := b.watcher.expect(names, func(m *v1alpha1.StorageMux) bool {
			return len(m.Status.Members) > 0 && string(m.Status.Members[0].State) == string(step.state)
		})
		began := time.Now()
		for _, name := range names {
			for _, proxy := range b.proxies.of(name).list {
				proxy.Edit(func(r *muxconfig.Report) {
					r.Members[0].State, r.Members[0].LastTransitionTime = step.state, time.Now()
				})
			}
		}
		at, err := b.watcher.wait(ctx, seen, patience)
		if err != nil {
			return err
		}
		*step.into = spread(began, at)
	}
	return b.measure(&b.report.afterFlap)
}

// move counts writes while requests come in everywhere.
func (b *bench) move(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	before, err := b.operator.writes()
	if err != nil {
		return err
	}
	cpu, err := b.operator.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	for time.Since(began) < b.sizes.moving {
		b.proxies.each(func(p *fleettest.Proxy) {
			p.EditFigures(func(r *muxconfig.Report) {
				r.Totals.Calls++
				for i := range r.Members {
					r.Members[i].Hits++
				}
			})
		})
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	after, err := b.operator.writes()
	if err != nil {
		return err
	}
	b.report.movingWrites = float64(after-before) / time.Since(began).Seconds()
	if err := b.measure(&b.report.afterMoving); err != nil {
		return err
	}
	b.report.movingCPU = float64(b.report.afterMoving.cpu-cpu.cpu) / float64(time.Since(began))
	return nil
}

// settle waits until the operator has written what was still to be written.
func (b *bench) settle(ctx context.Context) error {
	last := -1
	for {
		now, err := b.operator.writes()
		if err != nil {
			return err
		}
		if now == last {
			return nil
		}
		last = now
		if err := pause(ctx, 20*time.Second); err != nil {
			return err
		}
	}
}

// restart measures how long another operator takes to have heard of every proxy
// again, and what it writes for that.
func (b *bench) restart(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		return err
	}
	b.operator.stop()
	asked := map[*fleettest.Proxy]int64{}
	b.proxies.each(func(p *fleettest.Proxy) { asked[p] = p.Polls() })
	began := time.Now()
	var err error
	if b.operator, err = startOperator(ctx, b.files); err != nil {
		return err
	}
	for len(asked) > 0 {
		for p, before := range asked {
			if p.Polls() > before {
				delete(asked, p)
			}
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%d proxies were not asked within %s", len(asked), patience)
		}
	}
	b.report.restart = time.Since(began)
	if err := b.settle(ctx); err != nil {
		return err
	}
	b.report.restartWrites, err = b.operator.writes()
	if err != nil {
		return err
	}
	return b.measure(&b.report.afterRestart)
}

// idle counts writes while nothing happens.
func (b *bench) idle(ctx context.Context) error {
	before, err := b.operator.writes()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, b.sizes.idle); err != nil {
		return err
	}
	after, err := b.operator.writes()
	if err != nil {
		return err
	}
	b.report.idleWrites = after - before
	cpu := b.report.afterRestart.cpu
	if err := b.measure(&b.report.afterIdle); err != nil {
		return err
	}
	b.report.idleCPU = float64(b.report.afterIdle.cpu-cpu) / float64(time.Since(began))
	return nil
}

func (b *bench) measure(into *usage) error {
	u, err := b.operator.usage()
	*into = u
	return err
}

// parallel calls f for each name, so many at a time, and returns the first
// error.
func parallel(workers int, names []string, f func(string) error) error {
	work := make(chan string)
	errs := make(chan error, workers)
	var ended sync.WaitGroup
	for range workers {
		ended.Go(func() {
			var failed error
			for name := range work {
				if failed == nil {
					failed = f(name)
				}
			}
			errs <- failed
		})
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	ended.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
