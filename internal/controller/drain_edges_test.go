package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

var _ = Describe("deleting a StorageBackend where little else is well", func() {
	It("needs no pod that is ready", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		for _, p := range pods {
			p.setReady(false)
		}
		w.expectMux("assets", v1alpha1.ConditionReady, no, v1alpha1.ReasonNoProxyServing)
		w.deleteBackend("a")
		w.expectGone("a")
		Expect(w.document("assets").Backend("a")).To(BeNil())
	})

	It("needs no pod", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Replicas = ptr.To[int32](0) })
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonScaledToZero)
		w.deleteBackend("a")
		w.expectGone("a")
		Expect(w.document("assets").Backend("a")).To(BeNil())
		Expect(w.document("assets").Backend("b")).NotTo(BeNil())
	})

	It("waits for a pod that is cut off from the API server and answers the operator", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 3)
		w.expectServing("assets")
		pods[2].frozen.Store(true)
		w.deleteBackend("a")
		Eventually(func() []string {
			if drain := w.getBackend("a").Status.Drain; drain != nil {
				return drain.WaitingFor
			}
			return nil
		}).WithTimeout(soon).Should(ConsistOf("pod/" + pods[2].name))
		Consistently(func() *muxconfig.Backend { return w.document("assets").Backend("a") }).WithTimeout(time.Second).ShouldNot(BeNil())
		pods[2].frozen.Store(false)
		w.expectGone("a")
		w.expectServing("assets")
	})

	It("waits for the word of a pod that is ready and cut off from the operator", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		pods[1].kill()
		Eventually(func() int32 { return w.getMux("assets").Status.ProgrammedReplicas }).WithTimeout(soon).Should(Equal(int32(1)))
		w.deleteBackend("a")
		w.expectBackend("a", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Eventually(func() string { return w.backendCondition("a", v1alpha1.ConditionDraining)().Message }).WithTimeout(soon).Should(
			ContainSubstring("waiting for a report of " + pods[1].name))
		By("ending it, which a node that is lost does in the end")
		w.deletePod(pods[1].name)
		w.expectGone("a")
		w.expectServing("assets")
	})

	It("never lets the origin of a shield go, and any mirror of it", func() {
		w := newWorld()
		for _, name := range []string{"origin", "near", "nearer"} {
			w.backend(name)
		}
		w.create(&v1alpha1.StorageMux{
			ObjectMeta: named("assets"),
			Spec: v1alpha1.StorageMuxSpec{
				Mode: v1alpha1.ModeShield, Keyspace: v1alpha1.KeyspaceReplicated,
				Backends: []v1alpha1.Member{leaf("origin"), leaf("near"), leaf("nearer")},
			},
		})
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.deleteBackend("nearer")
		w.expectGone("nearer")
		w.deleteBackend("origin")
		w.expectBackend("origin", v1alpha1.ConditionDraining, yes, v1alpha1.ReasonDrainBlocked)
		Expect(w.backendCondition("origin", v1alpha1.ConditionDraining)().Message).To(ContainSubstring("origin of a shield"))
		Consistently(func() error {
			return cluster.Get(context.Background(), w.key("origin"), &v1alpha1.StorageBackend{})
		}).WithTimeout(time.Second).Should(Succeed())
		By("giving up the mode, which leaves a member that is like any other")
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Mode = v1alpha1.ModeFailover })
		w.expectGone("origin")
		w.expectServing("assets")
	})
})
