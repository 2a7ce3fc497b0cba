package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

var _ = Describe("a StorageBackend", func() {
	It("that no mux uses is ready and not asked for", func() {
		w := newWorld()
		w.backend("a")
		w.expectBackend("a", v1alpha1.ConditionReachable, unknown, v1alpha1.ReasonNotUsed)
		w.expectBackend("a", v1alpha1.ConditionReady, yes, v1alpha1.ReasonNotUsed)
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.CurrentStatus)
		w.deleteBackend("a")
		w.expectGone("a")
	})

	It("that only works outside a cluster is refused", func() {
		w := newWorld()
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "disk"},
			Spec:       v1alpha1.StorageBackendSpec{File: &v1alpha1.FileBackend{Path: "./data"}},
		})
		w.expectBackend("disk", v1alpha1.ConditionAccepted, no, v1alpha1.ReasonPathNotInCluster)
		w.expectBackend("disk", v1alpha1.ConditionStalled, yes, v1alpha1.ReasonPathNotInCluster)
		w.expectKstatus(v1alpha1.KindStorageBackend, "disk", status.FailedStatus)
	})

	It("shows what the proxies see of it, within a second", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, yes, v1alpha1.ReasonAllUp)

		By("going down in one of two proxies")
		down := func(m *muxconfig.MemberReport) {
			m.State, m.ConsecutiveFailures, m.LastTransitionTime = muxconfig.StateDown, 3, time.Now()
			m.LastError = &muxconfig.MemberError{Code: "STORAGE.ACCESS_DENIED", Message: "the store says no"}
		}
		pods[0].editMember("a", down)
		pods[0].proxy.Happen(muxconfig.Event{Topic: "storage-mux.backend.down", Path: "a", Message: "a is down"})
		Eventually(w.backendCondition("a", v1alpha1.ConditionReachable)).WithTimeout(soon).Should(be(no, v1alpha1.ReasonBadCredentials))
		w.expectBackend("a", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, no, v1alpha1.ReasonSomeDown)
		Expect(w.getMux("assets").Status.Members[0]).To(SatisfyAll(
			HaveField("Path", "a"), HaveField("State", v1alpha1.MemberStateDown),
			HaveField("Replicas", v1alpha1.StateCounts{Up: 1, Down: 1}),
			HaveField("LastError.Code", "STORAGE.ACCESS_DENIED")))
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		w.expectEvent(v1alpha1.KindStorageMux, "assets", "BackendDown")
		w.expectEvent(v1alpha1.KindStorageBackend, "a", "BackendDown")

		By("going down in both")
		pods[1].editMember("a", down)
		w.expectBackend("a", v1alpha1.ConditionReady, no, v1alpha1.ReasonBadCredentials)
		Expect(w.getMux("assets").Status.BackendsUp).To(Equal("1/2"))

		By("coming back")
		for _, p := range pods {
			p.editMember("a", func(m *muxconfig.MemberReport) { m.State, m.LastTransitionTime = muxconfig.StateUp, time.Now() })
		}
		w.expectBackend("a", v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, yes, v1alpha1.ReasonAllUp)
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.CurrentStatus)
	})

	It("is unknown once no proxy has answered for the grace period, and known again after", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		pods := w.startPods("assets", 1)
		w.expectServing("assets")
		pods[0].kill()
		w.expectMux("assets", v1alpha1.ConditionProgrammed, unknown, v1alpha1.ReasonNoReport)
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, unknown, v1alpha1.ReasonNoReport)
		w.expectBackend("a", v1alpha1.ConditionReachable, unknown, v1alpha1.ReasonNoReport)
		Expect(w.getMux("assets").Status.Members[0].State).To(Equal(v1alpha1.MemberStateUnknown))
		w.startPods("assets", 1)
		w.expectBackend("a", v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
	})

	It("shows the figures of all its muxes' proxies added up", func() {
		w := newWorld()
		w.backend("a")
		w.mux("one", v1alpha1.KeyspaceReplicated, "a")
		w.mux("two", v1alpha1.KeyspaceReplicated, "a")
		pods := append(w.startPods("one", 2), w.startPods("two", 1)...)
		w.expectServing("one")
		w.expectServing("two")
		for _, p := range pods {
			p.editMember("a", func(m *muxconfig.MemberReport) {
				m.Hits, m.Misses, m.P99Latency = 10, 1, 700
			})
		}
		Eventually(func() v1alpha1.StorageBackendStatus { return w.getBackend("a").Status }).WithTimeout(2 * soon).Should(SatisfyAll(
			HaveField("Hits", int64(30)), HaveField("Misses", int64(3)), HaveField("LatencyMicroseconds.P99", int64(700)),
			HaveField("UsedByCount", int32(2)), HaveField("StatsTime", Not(BeNil())), HaveField("Replicas.Up", int32(3))))
		Eventually(func() int64 { return w.getMux("one").Status.Members[0].Hits }).WithTimeout(2 * soon).Should(Equal(int64(20)))
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.CurrentStatus)
	})

	It("is freed by the one-shot for an uninstall", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.stop()
		w.deleteBackend("a")
		var freed []string
		Expect(ReleaseFinalizers(context.Background(), server, []string{w.namespace}, func(kind, _, name string) {
			freed = append(freed, kind+" "+name)
		})).To(Succeed())
		Expect(freed).To(Equal([]string{"StorageBackend a"}))
		w.expectGone("a")
	})
})
