package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

func TestUpgradesMoveInTurnAndWithinTheirLimit(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	u := &upgrades{limit: 2}
	failing := func() ([]types.NamespacedName, error) { return nil, errors.New("no cache") }
	if ok, err := u.begin(key("a"), failing); ok || err == nil {
		t.Fatalf("begun without knowing what an earlier leader began: %v, %v", ok, err)
	}
	found := 0
	find := func() ([]types.NamespacedName, error) { found++; return []types.NamespacedName{key("z")}, nil }
	for _, step := range []struct {
		name string
		want bool
	}{{"a", true}, {"b", false}, {"c", false}, {"a", true}, {"b", false}, {"z", true}} {
		if ok, err := u.begin(key(step.name), find); ok != step.want || err != nil {
			t.Errorf("%s: %v (%v), want %v", step.name, ok, err, step.want)
		}
	}
	if found != 1 {
		t.Errorf("looked %d times for what was begun, want 1", found)
	}
	if next := u.end(key("unknown")); len(next) != 0 {
		t.Errorf("the end of one that did not move lets %v go", next)
	}
	if next := u.end(key("z")); !slices.Equal(next, []types.NamespacedName{key("b")}) {
		t.Errorf("next is %v, want b", next)
	}
	if ok, _ := u.begin(key("b"), find); !ok {
		t.Error("b waited for its turn and does not get it")
	}
	if next := u.end(key("c")); len(next) != 0 {
		t.Errorf("the end of one that waited lets %v go", next)
	}
}

var _ = Describe("an operator that brings another build of the proxies", func() {
	image := func(w *world, mux string) func() string {
		return func() string {
			d := &appsv1.Deployment{}
			if err := cluster.Get(context.Background(), w.key(render.ChildName(mux)), d); err != nil {
				return err.Error()
			}
			return d.Spec.Template.Spec.Containers[0].Image
		}
	}
	const older, newer = "localhost/storagemux:test", "localhost/storagemux:next"

	It("replaces them mux by mux, and goes on where an earlier leader stopped", func() {
		w := newWorld()
		w.backend("a")
		muxes := []string{"one", "two", "three"}
		pods := map[string]*simulatedPod{}
		for _, name := range muxes {
			w.muxOf(name, false, leaf("a"))
			w.editMux(name, func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Replicas = ptr.To[int32](1) })
			pods[name] = w.startPods(name, 1)[0]
			w.expectServing(name)
		}
		moved := func() []string {
			var list []string
			for _, name := range muxes {
				if image(w, name)() == newer {
					list = append(list, name)
				}
			}
			return list
		}
		w.stop()
		w.options.ProxyImage = newer
		w.startOperator()
		seen := map[string]bool{}
		for round := 1; round <= len(muxes); round++ {
			Eventually(moved).WithTimeout(soon).Should(HaveLen(round))
			Consistently(moved).WithTimeout(time.Second).Should(HaveLen(round))
			for _, name := range moved() {
				if seen[name] {
					continue
				}
				seen[name] = true
				if round == 2 {
					By("another leader in the middle of it")
					w.stop()
					w.startOperator()
					Consistently(moved).WithTimeout(2 * time.Second).Should(HaveLen(round))
				}
				if round < len(muxes) {
					waits := slices.IndexFunc(muxes, func(m string) bool { return image(w, m)() == older })
					By("scaling one that waits for its turn")
					w.editMux(muxes[waits], func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Replicas = ptr.To(int32(round + 3)) })
					Eventually(func() int32 {
						d := &appsv1.Deployment{}
						Expect(cluster.Get(context.Background(), w.key(render.ChildName(muxes[waits])), d)).To(Succeed())
						return *d.Spec.Replicas
					}).WithTimeout(soon).Should(Equal(int32(round + 3)))
					w.editMux(muxes[waits], func(m *v1alpha1.StorageMux) { m.Spec.Proxy.Replicas = ptr.To[int32](1) })
				}
				w.startPods(name, 1)
				pods[name].kill()
				Expect(cluster.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pods[name].name}})).To(Succeed())
			}
		}
		for _, name := range muxes {
			w.expectServing(name)
			w.expectKstatus(v1alpha1.KindStorageMux, name, status.CurrentStatus)
		}
	})

	It("serves older proxies by the schema that they read, and says what they are too old for", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("assets", false, leaf("a"))
		pod := w.startPods("assets", 1)[0]
		w.expectServing("assets")
		pod.proxy.Edit(func(r *muxconfig.Report) { r.MaxSchema = muxconfig.SchemaVersion - 1 })
		Eventually(func() int { return w.document("assets").Schema }).WithTimeout(soon).Should(Equal(muxconfig.SchemaVersion - 1))
		w.expectServing("assets")
		before := w.document("assets")
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: v1alpha1.StorageBackendSpec{HTTP: &v1alpha1.HTTPBackend{
				URL: "https://dav.example.com/", Flavor: v1alpha1.HTTPFlavorPlain, Auth: v1alpha1.BackendAuth{Type: v1alpha1.AuthTypeAnonymous}}},
		})
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Backends = append(m.Spec.Backends, leaf("web")) })
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonProxyTooOld)
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		Expect(w.document("assets")).To(Equal(before))

		pod.proxy.Edit(func(r *muxconfig.Report) { r.MaxSchema = muxconfig.SchemaVersion })
		Eventually(func() *muxconfig.Backend { return w.document("assets").Backend("web") }).WithTimeout(soon).ShouldNot(BeNil())
		Expect(w.document("assets").Schema).To(Equal(muxconfig.SchemaVersion))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})

var _ = Describe("a StorageMux whose pods do not run", func() {
	It("says what is wrong with them", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("assets", false, leaf("a"))
		Eventually(func() *muxconfig.Document { return w.document("assets") }).WithTimeout(soon).ShouldNot(BeNil())
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonPending)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "assets-pod", Labels: render.ChildLabels("assets")},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "nowhere/none"}}},
		}
		w.create(pod)
		waiting := func(reason, message string) corev1.PodStatus {
			return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "proxy", Image: "nowhere/none",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			}}}
		}
		crashing := waiting("CrashLoopBackOff", "back-off 5m0s")
		crashing.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		stuck := waiting("ContainerCreating", "")
		stuck.StartTime = ptr.To(metav1.NewTime(time.Now().Add(-2 * startPatience)))
		for _, c := range []struct {
			status          corev1.PodStatus
			reason, message string
		}{
			{corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available",
			}}}, v1alpha1.ReasonUnschedulable, "0/3 nodes are available"},
			{waiting("ImagePullBackOff", "Back-off pulling"), v1alpha1.ReasonImagePullFailed, "nowhere/none"},
			{crashing, v1alpha1.ReasonProxyCrashing, "exit code 137 (OOMKilled)"},
			{waiting("CreateContainerConfigError", "secret x not found"), v1alpha1.ReasonPodNotStarting, "secret x not found"},
			{stuck, v1alpha1.ReasonPodNotStarting, "volumes"},
		} {
			pod.Status = c.status
			Expect(cluster.Status().Update(context.Background(), pod)).To(Succeed(), fmt.Sprint(c.reason))
			w.expectMux("assets", v1alpha1.ConditionProgrammed, no, c.reason)
			w.expectMux("assets", v1alpha1.ConditionReady, no, c.reason)
			Eventually(func() string { return w.muxCondition("assets", v1alpha1.ConditionProgrammed)().Message }).WithTimeout(soon).Should(
				SatisfyAll(ContainSubstring("assets-pod"), ContainSubstring(c.message)))
			w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)
		}
		Expect(cluster.Delete(context.Background(), pod)).To(Succeed())
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("says why none can be created", func() {
		w := newWorld()
		w.backend("a")
		w.muxOf("assets", false, leaf("a"))
		deployment := &appsv1.Deployment{}
		Eventually(func() error {
			return cluster.Get(context.Background(), w.key(render.ChildName("assets")), deployment)
		}).WithTimeout(soon).Should(Succeed())
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: few",
		}}
		Expect(cluster.Status().Update(context.Background(), deployment)).To(Succeed())
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonPodsNotCreated)
		Expect(w.muxCondition("assets", v1alpha1.ConditionProgrammed)().Message).To(ContainSubstring("exceeded quota: few"))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)
	})
})
