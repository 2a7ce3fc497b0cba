package controller

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// nested is a member that is the mux of that name.
func nested(name string) v1alpha1.Member {
	return v1alpha1.Member{Name: name, Ref: &v1alpha1.MemberReference{Kind: v1alpha1.MemberKindStorageMux, Name: name}}
}

func leaf(name string) v1alpha1.Member { return v1alpha1.Member{Name: name} }

// muxOf creates a StorageMux in mode failover, without a workload if bare.
func (w *world) muxOf(name string, bare bool, members ...v1alpha1.Member) {
	GinkgoHelper()
	m := &v1alpha1.StorageMux{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.StorageMuxSpec{Mode: v1alpha1.ModeFailover, Keyspace: v1alpha1.KeyspaceReplicated, Backends: members},
	}
	if bare {
		m.Spec.Proxy.Type = v1alpha1.ProxyTypeNone
	}
	w.create(m)
}

func (w *world) expectMuxGone(name string) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(cluster.Get(context.Background(), w.key(name), &v1alpha1.StorageMux{}))
	}).WithTimeout(2 * soon).Should(BeTrue())
}

func (w *world) deleteMux(name string) {
	GinkgoHelper()
	Expect(cluster.Delete(context.Background(), w.getMux(name))).To(Succeed())
}

func paths(m *v1alpha1.StorageMux) []string {
	list := []string{}
	for i := range m.Status.Members {
		list = append(list, m.Status.Members[i].Path)
	}
	return list
}

var _ = Describe("a StorageMux in another", func() {
	It("is rendered with all that is in it, and changes below reach the proxies", func() {
		w := newWorld()
		for _, name := range []string{"a", "b", "c"} {
			w.backend(name)
		}
		w.muxOf("leaves", true, leaf("b"))
		w.muxOf("middle", true, nested("leaves"))
		w.muxOf("assets", false, leaf("a"), nested("middle"))
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, yes, v1alpha1.ReasonAllUp)
		Eventually(func() []string { return paths(w.getMux("assets")) }).WithTimeout(soon).Should(Equal(
			[]string{"a", "middle", "middle/leaves", "middle/leaves/b"}))
		for _, name := range []string{"leaves", "middle"} {
			Expect(w.getMux(name).Finalizers).To(ContainElement(v1alpha1.FinalizerDrain))
			w.expectMux(name, v1alpha1.ConditionProgrammed, yes, v1alpha1.ReasonNoWorkload)
			w.expectMux(name, v1alpha1.ConditionReady, yes, v1alpha1.ReasonNoWorkload)
			w.expectMux(name, v1alpha1.ConditionBackendsHealthy, yes, v1alpha1.ReasonAllUp)
			Expect(w.document(name)).To(BeNil())
			Expect(apierrors.IsNotFound(cluster.Get(context.Background(), w.key(render.ChildName(name)), &appsv1.Deployment{}))).To(BeTrue())
			w.expectKstatus(v1alpha1.KindStorageMux, name, status.CurrentStatus)
		}
		Eventually(func() []v1alpha1.MuxReference { return w.getBackend("b").Status.UsedBy }).WithTimeout(soon).Should(Equal(
			[]v1alpha1.MuxReference{{Name: "assets"}, {Name: "leaves"}, {Name: "middle"}}))
		w.expectBackend("b", v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)

		By("changing the innermost mux")
		w.editMux("leaves", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, leaf("c")) })
		Eventually(func() *muxconfig.Backend { return w.document("assets").Backend("c") }).WithTimeout(soon).ShouldNot(BeNil())
		By("rotating the credentials of a store two levels down")
		secret := w.getSecret("b")
		w.edit(secret, func() { secret.StringData = credentials("rotated") })
		Eventually(func() string { return w.document("assets").Backend("b").S3.Auth.AccessKeyID }).WithTimeout(soon).Should(Equal("rotated"))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("counts in its own status what the proxies of all its parents see", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("pair", false, leaf("a"))
		w.muxOf("one", false, nested("pair"))
		w.muxOf("two", false, nested("pair"))
		own, one, two := w.startPods("pair", 1)[0], w.startPods("one", 1)[0], w.startPods("two", 1)[0]
		for _, name := range []string{"pair", "one", "two"} {
			w.expectServing(name)
		}
		own.editMember("a", func(m *muxconfig.MemberReport) { m.Hits = 1 })
		own.proxy.Edit(func(r *muxconfig.Report) { r.Totals.Calls = 1 })
		one.editMember("pair/a", func(m *muxconfig.MemberReport) { m.Hits = 10 })
		one.editMember("pair", func(m *muxconfig.MemberReport) { m.Totals = &muxconfig.Totals{Calls: 10, Failovers: 3} })
		two.editMember("pair/a", func(m *muxconfig.MemberReport) { m.Hits, m.State = 100, muxconfig.StateDown })
		Eventually(func() v1alpha1.StorageMuxStatus { return w.getMux("pair").Status }).WithTimeout(2 * soon).Should(SatisfyAll(
			HaveField("Totals", Equal(&v1alpha1.MuxTotals{Calls: 11, Failovers: 3})), HaveField("Replicas", int32(1)),
			HaveField("Members", ConsistOf(SatisfyAll(HaveField("Path", "a"), HaveField("Hits", int64(111)),
				HaveField("Replicas", v1alpha1.StateCounts{Up: 2, Down: 1}))))))
		w.expectMux("pair", v1alpha1.ConditionBackendsHealthy, no, v1alpha1.ReasonSomeDown)
		w.expectMux("pair", v1alpha1.ConditionProgrammed, yes, v1alpha1.ReasonProgrammed)
		w.expectMux("one", v1alpha1.ConditionBackendsHealthy, yes, v1alpha1.ReasonAllUp)
		w.expectKstatus(v1alpha1.KindStorageMux, "pair", status.CurrentStatus)
	})

	It("that comes to contain its parent freezes every topology with the cycle in it", func() {
		w := newWorld()
		for _, name := range []string{"a", "b"} {
			w.backend(name)
		}
		w.muxOf("inner", true, leaf("a"))
		w.muxOf("outer", false, nested("inner"), leaf("b"))
		w.muxOf("above", false, nested("outer"))
		w.startPods("outer", 1)
		w.startPods("above", 1)
		w.expectServing("outer")
		w.expectServing("above")
		before := w.document("outer")
		w.editMux("inner", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, nested("outer")) })
		for name, chain := range map[string]string{
			"inner": "inner -> outer -> inner", "outer": "outer -> inner -> outer", "above": "above -> outer -> inner -> outer",
		} {
			w.expectMux(name, v1alpha1.ConditionAccepted, no, v1alpha1.ReasonCycle)
			Expect(w.muxCondition(name, v1alpha1.ConditionAccepted)().Message).To(ContainSubstring(chain))
			w.expectKstatus(v1alpha1.KindStorageMux, name, status.FailedStatus)
		}
		Expect(w.document("outer")).To(Equal(before))
		w.expectMux("outer", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)

		w.editMux("inner", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{leaf("a")} })
		for _, name := range []string{"outer", "above"} {
			w.expectMux(name, v1alpha1.ConditionAccepted, yes, v1alpha1.ReasonAccepted)
			w.expectServing(name)
			w.expectKstatus(v1alpha1.KindStorageMux, name, status.CurrentStatus)
		}
		w.expectKstatus(v1alpha1.KindStorageMux, "inner", status.CurrentStatus)
	})

	It("may be eight levels deep, and a ninth made by an edit below freezes the topmost", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("m8", true, leaf("a"))
		for i := 7; i > 0; i-- {
			w.muxOf(fmt.Sprintf("m%d", i), i != 1, nested(fmt.Sprintf("m%d", i+1)))
		}
		w.startPods("m1", 1)
		w.expectServing("m1")
		before := w.document("m1")
		Expect(before.Muxes).To(HaveLen(8))
		w.muxOf("m9", true, leaf("a"))
		w.editMux("m8", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, nested("m9")) })
		w.expectMux("m1", v1alpha1.ConditionAccepted, no, v1alpha1.ReasonTooDeep)
		Expect(w.muxCondition("m1", v1alpha1.ConditionAccepted)().Message).To(ContainSubstring("m1 -> m2 -> m3 -> m4 -> m5 -> m6 -> m7 -> m8 -> m9"))
		w.expectMux("m2", v1alpha1.ConditionAccepted, yes, v1alpha1.ReasonAccepted)
		Expect(w.document("m1")).To(Equal(before))
		w.expectKstatus(v1alpha1.KindStorageMux, "m1", status.FailedStatus)
		w.expectKstatus(v1alpha1.KindStorageMux, "m2", status.CurrentStatus)
	})

	It("is held to one proxy by a store in memory at any depth", func() {
		w := newWorld()
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "memory"},
			Spec:       v1alpha1.StorageBackendSpec{Memory: &v1alpha1.MemoryBackend{}},
		})
		w.muxOf("cache", true, leaf("memory"))
		w.muxOf("assets", false, nested("cache"))
		w.expectMux("assets", v1alpha1.ConditionAccepted, no, v1alpha1.ReasonSingleReplicaRequired)
		Expect(w.muxCondition("assets", v1alpha1.ConditionAccepted)().Message).To(ContainSubstring("cache/memory"))
		w.expectMux("cache", v1alpha1.ConditionAccepted, yes, v1alpha1.ReasonAccepted)
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Replicas = ptr.To[int32](1) })
		w.startPods("assets", 1)
		w.expectServing("assets")
		deployment := &appsv1.Deployment{}
		Expect(cluster.Get(context.Background(), w.key(render.ChildName("assets")), deployment)).To(Succeed())
		Expect(deployment.Spec.Strategy.Type).To(Equal(appsv1.RecreateDeploymentStrategyType))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		w.expectKstatus(v1alpha1.KindStorageMux, "cache", status.CurrentStatus)
	})

	It("has the claims of its file backends mounted by its parent's proxies", func() {
		w := newWorld()
		w.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}})
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "files"},
			Spec:       v1alpha1.StorageBackendSpec{File: &v1alpha1.FileBackend{PersistentVolumeClaim: &v1alpha1.FileVolumeClaim{ClaimName: "disk"}}},
		})
		w.muxOf("cache", true, leaf("files"))
		w.muxOf("assets", false, nested("cache"))
		deployment := &appsv1.Deployment{}
		Eventually(func() error {
			return cluster.Get(context.Background(), w.key(render.ChildName("assets")), deployment)
		}).WithTimeout(soon).Should(Succeed())
		Expect(deployment.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("PersistentVolumeClaim", Equal(
			&corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}))))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)
	})

	It("loses its workload when its type becomes None, after its last proxy, and gets it back", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("assets", false, leaf("a"))
		pod := w.startPods("assets", 1)[0]
		w.expectServing("assets")
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Type = v1alpha1.ProxyTypeNone })
		gone := func(child client.Object) func() bool {
			return func() bool {
				err := cluster.Get(context.Background(), w.key(child.GetName()), child)
				return apierrors.IsNotFound(err)
			}
		}
		for _, child := range children("assets")[:2] {
			Eventually(gone(child)).WithTimeout(soon).Should(BeTrue(), "%T", child)
		}
		Expect(w.document("assets")).NotTo(BeNil())
		w.expectMux("assets", v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonProgressing)
		pod.kill()
		Expect(cluster.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod.name}})).To(Succeed())
		for _, child := range children("assets") {
			Eventually(gone(child)).WithTimeout(soon).Should(BeTrue(), "%T", child)
		}
		Eventually(func() *muxconfig.Document { return w.document("assets") }).WithTimeout(soon).Should(BeNil())
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonNoWorkload)
		Eventually(func() v1alpha1.StorageMuxStatus { return w.getMux("assets").Status }).WithTimeout(soon).Should(SatisfyAll(
			HaveField("Endpoint", ""), HaveField("Selector", ""), HaveField("ConnectionSecretName", ""), HaveField("Replicas", int32(0))))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)

		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Type = v1alpha1.ProxyTypeDeployment })
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})

var _ = Describe("deleting what is nested", func() {
	It("drains a StorageBackend at every depth at which it is", func() {
		w := newWorld()
		for _, name := range []string{"a", "b", "c"} {
			w.backend(name)
		}
		w.muxOf("inner", true, leaf("a"), leaf("b"))
		w.muxOf("middle", false, nested("inner"), leaf("a"), leaf("c"))
		w.muxOf("outer", false, leaf("c"), nested("middle"))
		middle, outer := w.startPods("middle", 1)[0], w.startPods("outer", 1)[0]
		w.expectServing("middle")
		w.expectServing("outer")
		middle.editMember("a", func(m *muxconfig.MemberReport) { m.InFlight = 1 })
		outer.editMember("middle/inner/a", func(m *muxconfig.MemberReport) { m.InFlight = 1 })
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainInProgress)
		Eventually(func() []string { return w.getBackend("a").Status.Drain.WaitingFor }).WithTimeout(soon).Should(
			ConsistOf("pod/"+middle.name, "pod/"+outer.name))
		end := func(p *simulatedPod, path string) {
			p.editMember(path, func(m *muxconfig.MemberReport) {
				m.InFlight = 0
				if m.Drain != nil {
					m.Drain.InFlight, m.Drain.Done = 0, true
				}
			})
		}
		end(middle, "a")
		Eventually(func() *muxconfig.Backend { return w.document("middle").Backend("a") }).WithTimeout(soon).Should(BeNil())
		Consistently(func() *muxconfig.Backend { return w.document("outer").Backend("a") }).WithTimeout(time.Second).ShouldNot(BeNil())
		end(outer, "middle/inner/a")
		w.expectGone("a")
		for _, name := range []string{"middle", "outer"} {
			w.expectServing(name)
			w.expectKstatus(v1alpha1.KindStorageMux, name, status.CurrentStatus)
		}
	})

	It("holds a StorageMux until its parents have let go of it, and drains it there", func() {
		w := newWorld()
		for _, name := range []string{"a", "b"} {
			w.backend(name)
		}
		w.muxOf("pair", true, leaf("a"))
		w.muxOf("assets", false, nested("pair"), leaf("b"))
		pod := w.startPods("assets", 1)[0]
		w.expectServing("assets")
		pod.editMember("pair", func(m *muxconfig.MemberReport) { m.InFlight = 1 })
		w.deleteMux("pair")
		w.expectMux("pair", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainInProgress)
		Eventually(func() *v1alpha1.DrainStatus { return w.getMux("pair").Status.Drain }).WithTimeout(soon).Should(SatisfyAll(
			Not(BeNil()), HaveField("Deadline", Not(BeNil())), HaveField("WaitingFor", ConsistOf("pod/"+pod.name))))
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonBackendDeleted)
		w.expectKstatus(v1alpha1.KindStorageMux, "pair", status.TerminatingStatus)
		pod.editMember("pair", func(m *muxconfig.MemberReport) { m.InFlight, m.Drain.InFlight, m.Drain.Done = 0, 0, true })
		w.expectMuxGone("pair")
		w.expectEvent(v1alpha1.KindStorageMux, "pair", "DrainCompleted")
		Expect(w.document("assets").Mux("pair")).To(BeNil())
		Expect(w.document("assets").Backend("a")).To(BeNil())
		w.expectBackend("a", v1alpha1.ConditionReachable, unknown, v1alpha1.ReasonNotUsed)
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("passes other credentials on to the proxies of all who still serve from it", func() {
		w := newWorld()
		for _, name := range []string{"a", "b"} {
			w.backend(name)
		}
		w.muxOf("pair", false, leaf("a"))
		w.muxOf("assets", false, nested("pair"))
		w.startPods("pair", 1)
		w.startPods("assets", 1)
		w.expectServing("pair")
		w.expectServing("assets")
		w.deleteMux("pair")
		w.expectMux("pair", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		secret := w.getSecret("a")
		w.edit(secret, func() { secret.StringData = credentials("rotated") })
		for _, mux := range []string{"pair", "assets"} {
			Eventually(func() string { return w.document(mux).Backend("a").S3.Auth.AccessKeyID }).WithTimeout(soon).Should(Equal("rotated"), mux)
			w.expectMux(mux, v1alpha1.ConditionProgrammed, yes, v1alpha1.ReasonProgrammed)
		}
		w.expectKstatus(v1alpha1.KindStorageMux, "pair", status.TerminatingStatus)
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, leaf("b")) })
		w.expectMuxGone("pair")
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("stays as it is served while it is paused, and what contains it does not", func() {
		w := newWorld()
		for _, name := range []string{"a", "b", "c"} {
			w.backend(name)
		}
		w.muxOf("pair", true, leaf("a"), leaf("b"))
		w.muxOf("assets", false, nested("pair"))
		w.startPods("assets", 1)
		w.expectServing("assets")
		before := w.document("assets").Mux("pair")
		w.editMux("pair", func(m *v1alpha1.StorageMux) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationPaused, v1alpha1.AnnotationTrue)
			m.Spec.Backends = []v1alpha1.Member{leaf("a"), leaf("c")}
		})
		w.expectMux("pair", v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonPaused)
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.BackendTimeout = "7s" })
		Eventually(func() time.Duration { return time.Duration(w.document("assets").Mux("assets").BackendTimeout) }).WithTimeout(soon).Should(Equal(7 * time.Second))
		Expect(w.document("assets").Mux("pair")).To(Equal(before))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)

		By("deleting a backend in it, which waits for the end of the pause")
		w.deleteBackend("b")
		w.expectBackend("b", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(w.backendCondition("b", v1alpha1.ConditionDraining)().Message).To(ContainSubstring("StorageMux pair is paused"))
		w.editMux("pair", func(m *v1alpha1.StorageMux) { delete(m.Annotations, v1alpha1.AnnotationPaused) })
		w.expectGone("b")
		Eventually(func() *muxconfig.Backend { return w.document("assets").Backend("c") }).WithTimeout(soon).ShouldNot(BeNil())
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		w.expectKstatus(v1alpha1.KindStorageMux, "pair", status.CurrentStatus)
	})

	It("is blocked for the last member at its level, until it is forced", func() {
		w := newWorld()
		for _, name := range []string{"a", "b"} {
			w.backend(name)
		}
		w.muxOf("pair", true, leaf("a"))
		w.muxOf("assets", false, nested("pair"), leaf("b"))
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(w.backendCondition("a", v1alpha1.ConditionDraining)().Message).To(SatisfyAll(
			ContainSubstring("StorageMux assets"), ContainSubstring("StorageMux pair")))
		By("letting the whole mux go, which frees it")
		w.deleteMux("pair")
		w.expectMuxGone("pair")
		w.expectGone("a")
		w.expectServing("assets")

		By("deleting a mux that is all its parent has")
		w.muxOf("alone", true, leaf("b"))
		w.muxOf("other", false, nested("alone"))
		w.startPods("other", 1)
		w.expectServing("other")
		w.deleteMux("alone")
		w.expectMux("alone", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		w.expectEvent(v1alpha1.KindStorageMux, "alone", "DrainBlocked")
		w.editMux("alone", func(m *v1alpha1.StorageMux) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationForceRemoval, v1alpha1.AnnotationTrue)
		})
		w.expectMuxGone("alone")
		w.expectMux("other", v1alpha1.ConditionBackendsHealthy, no, v1alpha1.ReasonAllDown)
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("drains a StorageMux that is taken from the list, and putting it back cancels that", func() {
		w := newWorld()
		for _, name := range []string{"a", "b"} {
			w.backend(name)
		}
		w.muxOf("pair", true, leaf("a"))
		w.muxOf("assets", false, nested("pair"), leaf("b"))
		pod := w.startPods("assets", 1)[0]
		w.expectServing("assets")
		pod.editMember("pair", func(m *muxconfig.MemberReport) { m.InFlight = 1 })
		member := func() *muxconfig.Drain { return w.document("assets").Mux("assets").Members[0].Drain }
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{leaf("b")} })
		Eventually(member).WithTimeout(soon).ShouldNot(BeNil())
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{nested("pair"), leaf("b")} })
		Eventually(member).WithTimeout(soon).Should(BeNil())
		pod.editMember("pair", func(m *muxconfig.MemberReport) { m.InFlight = 0 })
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{leaf("b")} })
		Eventually(func() *muxconfig.Mux { return w.document("assets").Mux("pair") }).WithTimeout(soon).Should(BeNil())
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		w.expectKstatus(v1alpha1.KindStorageMux, "pair", status.CurrentStatus)
	})

	It("does not wait for parents that are deleted too", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("pair", true, leaf("a"))
		w.muxOf("assets", false, nested("pair"))
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.deleteBackend("a")
		w.deleteMux("pair")
		w.expectMux("pair", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		w.deleteMux("assets")
		w.expectMuxGone("pair")
		w.expectGone("a")
	})
})
