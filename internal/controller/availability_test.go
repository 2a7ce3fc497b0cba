package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

var _ = Describe("two operators", func() {
	It("hand the lease over when one ends, and the next document says so", func() {
		w := newWorld(func(o *Options) { o.LeaderElection = true })
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		before := w.document("assets")
		stopFirst := w.stop
		w.startOperator()
		DeferCleanup(stopFirst)

		ended := time.Now()
		stopFirst()
		lease := &coordinationv1.Lease{}
		Eventually(func() string {
			Expect(cluster.Get(context.Background(), w.key(leaseName), lease)).To(Succeed())
			return ptr.Deref(lease.Spec.HolderIdentity, "")
		}).WithTimeout(soon).WithPolling(10 * time.Millisecond).ShouldNot(BeEmpty())
		// Both clocks are this process's.
		Expect(lease.Spec.AcquireTime.Sub(ended)).To(SatisfyAll(BeNumerically(">", 0), BeNumerically("<", 2*time.Second)), "the hand-over of the lease")
		w.backend("b")
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, v1alpha1.Member{Name: "b"}) })
		Eventually(func() *muxconfig.Document { return w.document("assets") }).WithTimeout(soon).Should(SatisfyAll(
			HaveField("Transitions", before.Transitions+1), HaveField("Revision", BeNumerically(">", before.Revision)),
			HaveField("Admin", before.Admin), HaveField("Keys", before.Keys)))
		AddReportEntry("hand-over", time.Since(ended).String())
		w.expectServing("assets")
		Eventually(func() string { return w.getMux("assets").Status.BackendsUp }).WithTimeout(soon).Should(Equal("2/2"))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("never let the one that was deposed replace what its successor wrote", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.stop()

		By("writing as a leader of the future would")
		doc := w.document("assets")
		doc.Transitions += 5
		doc.Revision++
		data, err := muxconfig.Encode(doc)
		Expect(err).NotTo(HaveOccurred())
		secret := w.getSecret("assets-storagemux-config")
		w.edit(secret, func() { secret.Data = map[string][]byte{muxconfig.SecretKey: data} })
		w.options.LeaderElection = true
		w.startOperator()
		w.backend("b")
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, v1alpha1.Member{Name: "b"}) })

		By("holding a lease with fewer transitions than the document, as after a new installation")
		Eventually(func() int { return len(w.document("assets").Backends) }).WithTimeout(soon).Should(Equal(2))
		Expect(w.document("assets").Transitions).To(Equal(doc.Transitions))
		w.expectServing("assets")
	})
})

// countingTransport counts what is sent to the API server to change something.
type countingTransport struct {
	http.RoundTripper
	writes *atomic.Int64
	mu     *sync.Mutex
	paths  *[]string
}

func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases/") {
		c.writes.Add(1)
		c.mu.Lock()
		*c.paths = append(*c.paths, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

var _ = Describe("an operator with nothing to do", func() {
	It("writes nothing, whatever wakes it", func() {
		var writes atomic.Int64
		var mu sync.Mutex
		var paths []string
		w := newWorld()
		w.stop()
		w.wrap = func(rt http.RoundTripper) http.RoundTripper { return countingTransport{rt, &writes, &mu, &paths} }
		w.startOperator()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		w.expectBackend("a", v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)
		time.Sleep(time.Second) // for events and statuses that are still on their way
		mu.Lock()
		paths = nil
		mu.Unlock()
		writes.Store(0)
		for range 5 {
			pods[0].editMember("a", func(m *muxconfig.MemberReport) { m.ConsecutiveFailures++ })
			secret := w.getSecret("a")
			w.edit(secret, func() { metav1.SetMetaDataLabel(&secret.ObjectMeta, "touched", time.Now().Format("150405.000")) })
			pod := &corev1.Pod{}
			Expect(cluster.Get(context.Background(), w.key(pods[1].name), pod)).To(Succeed())
			pod.Status.Message = time.Now().String()
			Expect(cluster.Status().Update(context.Background(), pod)).To(Succeed())
			time.Sleep(200 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		Expect(paths).To(BeEmpty())
		Expect(writes.Load()).To(BeZero())
	})
})

var _ = Describe("an operator that is started anew", func() {
	It("writes nothing where nothing has changed, and undoes what has", func() {
		var writes atomic.Int64
		var mu sync.Mutex
		var paths []string
		w := newWorld()
		w.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "files"},
			Spec:       v1alpha1.StorageBackendSpec{File: &v1alpha1.FileBackend{PersistentVolumeClaim: &v1alpha1.FileVolumeClaim{ClaimName: "disk"}}},
		})
		w.backend("a")
		w.create(&v1alpha1.StorageMux{
			ObjectMeta: metav1.ObjectMeta{Name: "assets"},
			Spec: v1alpha1.StorageMuxSpec{
				Mode: v1alpha1.ModeFailover, Keyspace: v1alpha1.KeyspaceReplicated, Backends: []v1alpha1.Member{leaf("files"), leaf("a")},
				Proxy: v1alpha1.ProxySpec{
					Resources:          &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5")}},
					ServiceAnnotations: map[string]v1alpha1.AnnotationValue{"example.com/x": "y"},
					NodeSelector:       map[string]v1alpha1.LabelValue{"disk": "fast"},
					Tolerations:        []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
				},
			},
		})
		w.startPods("assets", 2)
		w.expectServing("assets")
		for _, name := range []string{"files", "a"} {
			w.expectBackend(name, v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)
		}
		w.stop()
		deployment := &appsv1.Deployment{}
		key := w.key(render.ChildName("assets"))
		Expect(cluster.Get(context.Background(), key, deployment)).To(Succeed())
		wanted := deployment.Spec.Template.Spec.ServiceAccountName
		w.wrap = func(rt http.RoundTripper) http.RoundTripper { return countingTransport{rt, &writes, &mu, &paths} }
		taken := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(paths)
		}
		w.startOperator()
		Consistently(taken).WithTimeout(3 * time.Second).Should(BeEmpty())
		w.expectServing("assets")
		w.stop()

		By("changing a child while no operator runs")
		w.edit(deployment, func() {
			deployment.Spec.Template.Spec.ServiceAccountName = "default"
			deployment.Spec.Template.Spec.DeprecatedServiceAccount = "default"
		})
		w.startOperator()
		Eventually(func() string {
			Expect(cluster.Get(context.Background(), key, deployment)).To(Succeed())
			return deployment.Spec.Template.Spec.ServiceAccountName
		}).WithTimeout(soon).Should(Equal(wanted))
		Consistently(taken).WithTimeout(time.Second).Should(HaveLen(1))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})

var _ = Describe("a StorageMux that is made anew", func() {
	It("waits for what is left of the one before", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		for _, p := range w.startPods("assets", 1) {
			w.expectServing("assets")
			p.kill()
			Expect(cluster.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: p.name}})).To(Succeed())
		}
		old := w.document("assets")
		Expect(cluster.Delete(context.Background(), w.getMux("assets"))).To(Succeed())
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonPending)
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)

		By("removing in place of the garbage collector, which envtest does not have")
		for _, child := range append(children("assets"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "assets-storagemux-config"}}) {
			child.SetNamespace(w.namespace)
			Expect(cluster.Delete(context.Background(), child)).To(Succeed())
		}
		w.startPods("assets", 1)
		w.expectServing("assets")
		Expect(w.document("assets").Admin.Token).NotTo(Equal(old.Admin.Token))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})
