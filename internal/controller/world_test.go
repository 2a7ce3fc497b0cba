package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/fleet/fleettest"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// soon is for what the operator does at once, on a machine that has other work.
const soon = time.Minute

// world is one namespace with an operator of its own, and with pods that the
// test makes in place of a Deployment controller and a kubelet.
type world struct {
	namespace string
	network   *fleettest.Network
	options   Options
	wrap      func(http.RoundTripper) http.RoundTripper
	stop      func()
	node      string // where pods are bound to; "" leaves them unbound
	// outdated is the document that new pods stay with until they are thawed.
	outdated *muxconfig.Document
	pods     map[string]*simulatedPod
}

var worlds atomic.Int64

func newWorld(adjust ...func(*Options)) *world {
	GinkgoHelper()
	w := &world{
		namespace: fmt.Sprintf("world-%d", worlds.Add(1)),
		network:   &fleettest.Network{},
		pods:      map[string]*simulatedPod{},
	}
	Expect(cluster.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	w.options = Options{
		ProxyImage: "localhost/storagemux:test", Namespace: w.namespace, WatchNamespaces: []string{w.namespace},
		MetricsAddress: "0", HealthAddress: "0", MaxConcurrentReconciles: 2, MaxUpgradingMuxes: 1,
		ReportGrace: time.Second, DialProxy: w.network.Dial, manyManagers: true,
	}
	for _, a := range adjust {
		a(&w.options)
	}
	w.startOperator()
	DeferCleanup(func() {
		if !CurrentSpecReport().Failed() {
			w.checkKstatus()
		}
		w.stop()
		for _, p := range w.pods {
			p.kill()
		}
	})
	return w
}

// startOperator runs an operator until w.stop is called.
func (w *world) startOperator() {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	config := rest.CopyConfig(server)
	if w.wrap != nil {
		config.Wrap(w.wrap)
	}
	mgr, err := NewManager(ctx, config, w.options)
	Expect(err).NotTo(HaveOccurred())
	var ended sync.WaitGroup
	ended.Go(func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		ended.Wait()
	})
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

func (w *world) create(o client.Object) {
	GinkgoHelper()
	o.SetNamespace(w.namespace)
	Expect(cluster.Create(context.Background(), o)).To(Succeed())
}

func (w *world) secret(name string, data map[string]string) {
	GinkgoHelper()
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data})
}

// credentials is what a Secret for s3 must hold.
func credentials(id string) map[string]string {
	return map[string]string{v1alpha1.SecretKeyAWSAccessKeyID: id, v1alpha1.SecretKeyAWSSecretAccessKey: "hidden-" + id}
}

// backend creates an s3 StorageBackend and its Secret, both of this name.
func (w *world) backend(name string) {
	GinkgoHelper()
	w.secret(name, credentials("key-"+name))
	w.bareBackend(name)
}

func (w *world) bareBackend(name string) {
	GinkgoHelper()
	w.create(&v1alpha1.StorageBackend{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.StorageBackendSpec{
			S3: &v1alpha1.S3Backend{
				Endpoint: "http://store.example.com:9000", Bucket: "bucket-" + name,
				Auth: v1alpha1.BackendAuth{Type: v1alpha1.AuthTypeSecret, SecretRef: &v1alpha1.SecretReference{Name: name}},
			},
			DrainTimeout: "10m",
		},
	})
}

// mux creates a StorageMux in mode failover.
func (w *world) mux(name string, keyspace v1alpha1.Keyspace, backends ...string) {
	GinkgoHelper()
	m := &v1alpha1.StorageMux{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.StorageMuxSpec{Mode: v1alpha1.ModeFailover, Keyspace: keyspace},
	}
	for _, b := range backends {
		m.Spec.Backends = append(m.Spec.Backends, v1alpha1.Member{Name: b})
	}
	w.create(m)
}

func (w *world) getMux(name string) *v1alpha1.StorageMux {
	GinkgoHelper()
	m := &v1alpha1.StorageMux{}
	Expect(cluster.Get(context.Background(), w.key(name), m)).To(Succeed())
	return m
}

func (w *world) getBackend(name string) *v1alpha1.StorageBackend {
	GinkgoHelper()
	b := &v1alpha1.StorageBackend{}
	Expect(cluster.Get(context.Background(), w.key(name), b)).To(Succeed())
	return b
}

// document returns the stored document of a mux, nil if there is none.
func (w *world) document(mux string) *muxconfig.Document {
	secret := &corev1.Secret{}
	err := cluster.Get(context.Background(), w.key(render.ConfigSecretName(mux)), secret)
	if err != nil {
		return nil
	}
	doc, err := muxconfig.Decode(secret.Data[muxconfig.SecretKey])
	if err != nil {
		return nil
	}
	return doc
}

func (w *world) edit(o client.Object, change func()) {
	GinkgoHelper()
	Eventually(func() error {
		if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return cluster.Update(context.Background(), o)
	}).WithTimeout(soon).Should(Succeed())
}

func (w *world) editMux(name string, change func(*v1alpha1.StorageMux)) {
	GinkgoHelper()
	m := w.getMux(name)
	w.edit(m, func() { change(m) })
}

func (w *world) annotateBackend(name, annotation string) {
	GinkgoHelper()
	b := w.getBackend(name)
	w.edit(b, func() { metav1.SetMetaDataAnnotation(&b.ObjectMeta, annotation, v1alpha1.AnnotationTrue) })
}

func (w *world) deleteBackend(name string) {
	GinkgoHelper()
	Expect(cluster.Delete(context.Background(), w.getBackend(name))).To(Succeed())
}

// condition reads one condition of a mux.
func (w *world) muxCondition(name, kind string) func() *metav1.Condition {
	return func() *metav1.Condition {
		m := &v1alpha1.StorageMux{}
		if err := cluster.Get(context.Background(), w.key(name), m); err != nil {
			return nil
		}
		return meta.FindStatusCondition(m.Status.Conditions, kind)
	}
}

func (w *world) backendCondition(name, kind string) func() *metav1.Condition {
	return func() *metav1.Condition {
		b := &v1alpha1.StorageBackend{}
		if err := cluster.Get(context.Background(), w.key(name), b); err != nil {
			return nil
		}
		return meta.FindStatusCondition(b.Status.Conditions, kind)
	}
}

// be matches a condition by status and reason.
func be(status metav1.ConditionStatus, reason string) gomegatypes.GomegaMatcher {
	return SatisfyAll(Not(BeNil()), HaveField("Status", status), HaveField("Reason", reason))
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func (w *world) expectMux(name, condition string, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(w.muxCondition(name, condition)).WithTimeout(soon).Should(be(status, reason))
}

func (w *world) expectBackend(name, condition string, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(w.backendCondition(name, condition)).WithTimeout(soon).Should(be(status, reason))
}

func (w *world) expectGone(name string) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(cluster.Get(context.Background(), w.key(name), &v1alpha1.StorageBackend{}))
	}).WithTimeout(2 * soon).Should(BeTrue())
}

// expectServing waits until a mux is programmed and ready.
func (w *world) expectServing(mux string) {
	GinkgoHelper()
	w.expectMux(mux, v1alpha1.ConditionProgrammed, yes, v1alpha1.ReasonProgrammed)
	w.expectMux(mux, v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
}

func unstructuredOf(kind string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return u
}

// kstatus is how tools read the state of an object.
func (w *world) kstatus(kind, name string) status.Status {
	GinkgoHelper()
	u := unstructuredOf(kind, map[string]any{})
	Expect(cluster.Get(context.Background(), w.key(name), u)).To(Succeed())
	result, err := status.Compute(u)
	Expect(err).NotTo(HaveOccurred())
	return result.Status
}

func (w *world) expectKstatus(kind, name string, want status.Status) {
	GinkgoHelper()
	Eventually(func() status.Status { return w.kstatus(kind, name) }).WithTimeout(soon).Should(Equal(want))
}

// events returns the reasons of the events of an object.
func (w *world) events(kind, name string) []string {
	list := &eventsv1.EventList{}
	if err := cluster.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
		return nil
	}
	var reasons []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Kind == kind && e.Regarding.Name == name {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

func (w *world) expectEvent(kind, name, reason string) {
	GinkgoHelper()
	Eventually(func() []string { return w.events(kind, name) }).WithTimeout(soon).Should(ContainElement(reason))
}

// simulatedPod is a pod with a simulated proxy in it, which follows the
// document as long as it is not frozen.
type simulatedPod struct {
	world  *world
	name   string
	ip     string
	proxy  *fleettest.Proxy
	frozen atomic.Bool
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

var addresses atomic.Int64

// startPods adds ready pods with proxies to a mux whose document is there.
func (w *world) startPods(mux string, count int) []*simulatedPod {
	GinkgoHelper()
	Eventually(func() *muxconfig.Document { return w.document(mux) }).WithTimeout(soon).ShouldNot(BeNil())
	var started []*simulatedPod
	for range count {
		number := addresses.Add(1)
		p := &simulatedPod{world: w, name: fmt.Sprintf("%s-pod-%d", mux, number), ip: fmt.Sprintf("10.7.%d.%d", number/250, number%250+1)}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: render.ChildLabels(mux), Annotations: w.podAnnotations(mux)},
			Spec:       corev1.PodSpec{NodeName: w.node, Containers: []corev1.Container{{Name: "proxy", Image: w.options.ProxyImage}}},
		}
		w.create(pod)
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: p.ip, PodIPs: []corev1.PodIP{{IP: p.ip}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}
		Expect(cluster.Status().Update(context.Background(), pod)).To(Succeed())
		var err error
		doc := w.document(mux)
		if w.outdated != nil {
			doc = w.outdated
			p.frozen.Store(true)
		}
		p.proxy, err = fleettest.Start(w.network, p.ip, doc)
		Expect(err).NotTo(HaveOccurred())
		var ctx context.Context
		ctx, p.cancel = context.WithCancel(context.Background())
		p.ended.Go(func() { p.follow(ctx, mux) })
		w.pods[p.name] = p
		started = append(started, p)
	}
	return started
}

// podAnnotations are those that a Deployment controller would give a new pod.
func (w *world) podAnnotations(mux string) map[string]string {
	deployment := &appsv1.Deployment{}
	if err := cluster.Get(context.Background(), w.key(render.ChildName(mux)), deployment); err != nil {
		return nil
	}
	return deployment.Spec.Template.Annotations
}

// setReady changes the pod's condition.
func (p *simulatedPod) setReady(ready bool) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(cluster.Get(context.Background(), p.world.key(p.name), pod)).To(Succeed())
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if ready {
		pod.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	Expect(cluster.Status().Update(context.Background(), pod)).To(Succeed())
}

// follow applies each new document, and ends with the pod.
func (p *simulatedPod) follow(ctx context.Context, mux string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	defer p.proxy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := cluster.Get(ctx, p.world.key(p.name), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return
		}
		if doc := p.world.document(mux); doc != nil && !p.frozen.Load() && doc.Revision > p.proxy.Applied() {
			p.proxy.Apply(doc)
		}
	}
}

// kill ends the proxy; the pod object stays.
func (p *simulatedPod) kill() {
	p.cancel()
	p.ended.Wait()
}

// editMember changes what the proxy says of one member.
func (p *simulatedPod) editMember(path string, change func(*muxconfig.MemberReport)) {
	p.proxy.Edit(func(r *muxconfig.Report) {
		for i := range r.Members {
			if r.Members[i].Path == path {
				change(&r.Members[i])
			}
		}
	})
}

func (w *world) getSecret(name string) *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(cluster.Get(context.Background(), w.key(name), secret)).To(Succeed())
	return secret
}

func (w *world) deletePod(name string) {
	GinkgoHelper()
	Expect(cluster.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})).To(Succeed())
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
