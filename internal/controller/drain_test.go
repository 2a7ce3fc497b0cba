package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

var _ = Describe("deleting a StorageBackend", func() {
	// holding makes a request run on the member in this proxy until let go.
	holding := func(p *simulatedPod, path string) {
		p.editMember(path, func(m *muxconfig.MemberReport) { m.InFlight = 1 })
	}
	letGo := func(p *simulatedPod, path string) {
		p.editMember(path, func(m *muxconfig.MemberReport) {
			m.InFlight = 0
			if m.Drain != nil {
				m.Drain.InFlight, m.Drain.Done = 0, true
			}
		})
	}
	drainPhase := func(w *world, mux, member string) func() muxconfig.DrainPhase {
		return func() muxconfig.DrainPhase {
			doc := w.document(mux)
			for _, m := range doc.Mux(doc.Root).Members {
				if m.Name == member && m.Drain != nil {
					return m.Drain.Phase
				}
			}
			return ""
		}
	}

	It("waits for what runs on it, then lets it go", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		holding(pods[1], "a")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainInProgress)
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		Eventually(func() *v1alpha1.DrainStatus { return w.getBackend("a").Status.Drain }).WithTimeout(soon).Should(SatisfyAll(
			Not(BeNil()), HaveField("Deadline", Not(BeNil())), HaveField("StartedAt", Not(BeNil())),
			HaveField("WaitingFor", ConsistOf("pod/"+pods[1].name))))
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.TerminatingStatus)
		w.expectEvent(v1alpha1.KindStorageBackend, "a", "DrainStarted")
		letGo(pods[1], "a")
		w.expectGone("a")
		w.expectEvent(v1alpha1.KindStorageBackend, "a", "DrainCompleted")
		Expect(w.document("assets").Backend("a")).To(BeNil())
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("drains a candidate of a fallback backend as it does a member of a list", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "ladder"},
			Spec: v1alpha1.StorageBackendSpec{Fallback: &v1alpha1.FallbackBackend{
				URI: "fallback://?u=backend%3A%2F%2Fa%2Fbase&u=backend%3A%2F%2Fb",
			}},
		})
		w.mux("assets", v1alpha1.KeyspaceReplicated, "ladder")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		for _, name := range []string{"a", "b", "ladder"} {
			Eventually(func() []v1alpha1.MuxReference { return w.getBackend(name).Status.UsedBy }).WithTimeout(soon).
				Should(ConsistOf(v1alpha1.MuxReference{Name: "assets"}))
		}
		holding(pods[0], "ladder/backend.a")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainInProgress)
		Eventually(func() *v1alpha1.DrainStatus { return w.getBackend("a").Status.Drain }).WithTimeout(soon).Should(SatisfyAll(
			Not(BeNil()), HaveField("WaitingFor", ConsistOf("pod/"+pods[0].name))))
		letGo(pods[0], "ladder/backend.a")
		w.expectGone("a")
		Expect(w.document("assets").Backend("a")).To(BeNil())
		Expect(w.document("assets").Backend("ladder")).NotTo(BeNil())
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		w.deleteBackend("b")
		w.expectBackend("b", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
	})

	It("is blocked for the last member, until another one is added", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(w.backendCondition("a", v1alpha1.ConditionDraining)().Message).To(ContainSubstring("StorageMux assets"))
		Expect(w.getBackend("a").Status.Drain.WaitingFor).To(ConsistOf("storagemux/assets"))
		w.expectEvent(v1alpha1.KindStorageBackend, "a", "DrainBlocked")
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)

		w.backend("b")
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, v1alpha1.Member{Name: "b"}) })
		w.expectGone("a")
		Eventually(func() []muxconfig.Released { return w.document("assets").Released }).WithTimeout(soon).Should(BeEmpty())
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("is blocked for the last member, until the annotation forces it", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		w.annotateBackend("a", v1alpha1.AnnotationForceRemoval)
		w.expectGone("a")
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, no, v1alpha1.ReasonAllDown)
	})

	It("lets one of two go at a time", func() {
		w := newWorld()
		for _, name := range []string{"a", "b", "c"} {
			w.backend(name)
		}
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b", "c")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		holding(pods[0], "a")
		holding(pods[0], "b")
		w.deleteBackend("a")
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		w.deleteBackend("b")
		w.expectBackend("b", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(drainPhase(w, "assets", "b")()).To(BeEmpty())
		letGo(pods[0], "a")
		w.expectGone("a")
		Eventually(drainPhase(w, "assets", "b")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		letGo(pods[0], "b")
		w.expectGone("b")
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("is blocked while no other member is up", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		pods[0].editMember("b", func(m *muxconfig.MemberReport) { m.State = muxconfig.StateDown })
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, no, v1alpha1.ReasonSomeDown)
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		pods[0].editMember("b", func(m *muxconfig.MemberReport) { m.State = muxconfig.StateUp })
		w.expectGone("a")
		w.expectServing("assets")
	})

	Describe("in keyspace spread", func() {
		setUp := func() (*world, []*simulatedPod) {
			w := newWorld()
			w.backend("a")
			w.backend("b")
			w.mux("assets", v1alpha1.KeyspaceSpread, "a", "b")
			pods := w.startPods("assets", 2)
			w.expectServing("assets")
			w.deleteBackend("a")
			Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainReadOnly))
			w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
			return w, pods
		}

		It("is blocked and readable until the data has been moved", func() {
			w, _ := setUp()
			Expect(w.backendCondition("a", v1alpha1.ConditionDraining)().Message).To(ContainSubstring("data-moved"))
			w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
			w.annotateBackend("a", v1alpha1.AnnotationDataMoved)
			w.expectGone("a")
			w.expectServing("assets")
			w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		})

		It("goes by itself once every proxy sees its store empty", func() {
			w, pods := setUp()
			for _, p := range pods {
				p.editMember("a", func(m *muxconfig.MemberReport) { m.Drain.StoreEmpty = ptr.To(true) })
			}
			Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).ShouldNot(Equal(muxconfig.DrainReadOnly))
			Eventually(func() string {
				for _, p := range pods {
					p.editMember("a", func(m *muxconfig.MemberReport) {
						if m.Drain != nil {
							m.Drain.StoreEmpty = ptr.To(true)
						}
					})
				}
				if w.document("assets").Backend("a") != nil {
					return "held"
				}
				return "gone"
			}).WithTimeout(soon).WithPolling(200 * time.Millisecond).Should(Equal("gone"))
			w.expectGone("a")
		})
	})

	It("deletes the pods that do not let go in time", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		b := w.getBackend("a")
		w.edit(b, func() { b.Spec.DrainTimeout = "1s" })
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		pods[0].frozen.Store(true)
		w.deleteBackend("a")
		w.expectEvent(v1alpha1.KindStorageMux, "assets", "DrainForced")
		w.expectEvent(v1alpha1.KindStorageBackend, "a", "DrainForced")
		w.expectGone("a")
		Expect(w.document("assets").Backend("a")).To(BeNil())
		w.expectServing("assets")
	})

	It("waits for a pod that runs and has not told anything", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		pods[0].frozen.Store(true)
		w.deleteBackend("a")
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		Consistently(func() error {
			return cluster.Get(context.Background(), w.key("a"), &v1alpha1.StorageBackend{})
		}).WithTimeout(2 * time.Second).Should(Succeed())
		pods[0].frozen.Store(false)
		w.expectGone("a")
	})

	It("waits for a terminating pod that still holds a transfer", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		w.node = "node" // its kubelet, which is not there, would have to confirm the end
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		holding(pods[0], "a")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pods[0].name}}
		Expect(cluster.Delete(context.Background(), pod)).To(Succeed())
		Eventually(func() int32 { return w.getMux("assets").Status.Replicas }).WithTimeout(soon).Should(Equal(int32(1)))
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainInProgress)
		Consistently(func() error {
			return cluster.Get(context.Background(), w.key("a"), &v1alpha1.StorageBackend{})
		}).WithTimeout(time.Second).Should(Succeed())
		letGo(pods[0], "a")
		w.expectGone("a")
		w.expectServing("assets")
	})

	It("does not wait for a pod that has vanished", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		pods[0].frozen.Store(true)
		w.deleteBackend("a")
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		pods[0].kill()
		Expect(cluster.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pods[0].name}})).To(Succeed())
		w.expectGone("a")
		w.expectServing("assets")
	})

	It("waits for a pod that starts half-way and for pods that are not ready", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		w.outdated = w.document("assets")
		pods[0].setReady(false)
		holding(pods[0], "a")
		w.deleteBackend("a")
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		late := w.startPods("assets", 1)[0]
		letGo(pods[0], "a")
		Consistently(func() error {
			return cluster.Get(context.Background(), w.key("a"), &v1alpha1.StorageBackend{})
		}).WithTimeout(time.Second).Should(Succeed())
		late.frozen.Store(false)
		w.expectGone("a")
	})

	It("goes on in a mux whose spec is refused meanwhile", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.muxOf("loop", true, nested("assets"))
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, nested("loop")) })
		w.expectMux("assets", v1alpha1.ConditionAccepted, no, v1alpha1.ReasonCycle)
		w.deleteBackend("a")
		w.expectGone("a")
		Expect(w.document("assets").Backend("a")).To(BeNil())
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.FailedStatus)
	})

	It("ends with its namespace", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		Expect(cluster.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
		By("deleting, in place of the namespace controller, the backend before the mux")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(cluster.Delete(context.Background(), w.getMux("assets"))).To(Succeed())
		w.expectGone("a")
	})

	It("goes on with the same deadline when the operator restarts half-way", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		holding(pods[0], "a")
		w.deleteBackend("a")
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		before := w.document("assets")
		w.stop()
		w.startOperator()
		Consistently(func() *muxconfig.Document { return w.document("assets") }).WithTimeout(2 * time.Second).Should(Equal(before))
		letGo(pods[0], "a")
		w.expectGone("a")
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("is seen by an operator that was down when it came", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.stop()
		w.deleteBackend("a")
		w.startOperator()
		w.expectGone("a")
		w.expectServing("assets")
	})

	It("does not wait for a mux that is deleted", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(cluster.Delete(context.Background(), w.getMux("assets"))).To(Succeed())
		w.expectGone("a")
	})

	It("waits in each mux that uses it", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("one", v1alpha1.KeyspaceReplicated, "a", "b")
		w.mux("two", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("one", 1)
		w.startPods("two", 1)
		w.expectServing("one")
		w.expectServing("two")
		w.deleteBackend("a")
		Eventually(func() *muxconfig.Backend { return w.document("one").Backend("a") }).WithTimeout(soon).Should(BeNil())
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Eventually(func() string { return w.backendCondition("a", v1alpha1.ConditionDraining)().Message }).WithTimeout(soon).Should(SatisfyAll(
			ContainSubstring("StorageMux two"), Not(ContainSubstring("StorageMux one"))))
		Expect(w.document("one").Released).To(HaveLen(1))
		w.editMux("two", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{{Name: "b"}} })
		w.expectGone("a")
	})

	It("gives way to a new one of the same name", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		w.startPods("assets", 1)
		w.expectServing("assets")
		old := w.getBackend("a").UID
		w.deleteBackend("a")
		w.expectGone("a")
		w.bareBackend("a")
		Eventually(func() *muxconfig.Backend { return w.document("assets").Backend("a") }).WithTimeout(soon).Should(SatisfyAll(
			Not(BeNil()), HaveField("UID", Not(Equal(string(old)))), HaveField("UID", string(w.getBackend("a").UID))))
		w.expectServing("assets")
		w.expectBackend("a", v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.CurrentStatus)
	})

	It("uses the credentials that were rendered last when the Secret goes with it", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		holding(pods[0], "a")
		w.deleteBackend("a")
		Eventually(drainPhase(w, "assets", "a")).WithTimeout(soon).Should(Equal(muxconfig.DrainGranted))
		before := w.document("assets").Revision
		secret := w.getSecret("a")
		Expect(cluster.Delete(context.Background(), secret)).To(Succeed())
		Consistently(func() string { return w.document("assets").Backend("a").S3.Auth.AccessKeyID }).WithTimeout(2 * time.Second).Should(Equal("key-a"))
		Expect(w.document("assets").Revision).To(Equal(before))
		letGo(pods[0], "a")
		w.expectGone("a")
	})
})

var _ = Describe("taking a StorageBackend from the list", func() {
	It("drains it in that mux, and putting it back cancels that", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		pods[0].editMember("a", func(m *muxconfig.MemberReport) { m.InFlight = 1 })
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{{Name: "b"}} })
		Eventually(func() *muxconfig.Drain {
			return w.document("assets").Mux("assets").Members[0].Drain
		}).WithTimeout(soon).ShouldNot(BeNil())
		Expect(w.getBackend("a").DeletionTimestamp).To(BeNil())

		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{{Name: "a"}, {Name: "b"}} })
		Eventually(func() *muxconfig.Drain {
			return w.document("assets").Mux("assets").Members[0].Drain
		}).WithTimeout(soon).Should(BeNil())
		w.expectServing("assets")

		By("letting it end this time")
		pods[0].editMember("a", func(m *muxconfig.MemberReport) { m.InFlight = 0 })
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = []v1alpha1.Member{{Name: "b"}} })
		Eventually(func() *muxconfig.Backend { return w.document("assets").Backend("a") }).WithTimeout(soon).Should(BeNil())
		w.expectServing("assets")
		w.expectBackend("a", v1alpha1.ConditionReachable, unknown, v1alpha1.ReasonNotUsed)
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.CurrentStatus)
	})
})
