package controller

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// checkKstatus ends every test: whatever state it left its objects in, tools
// that know nothing of them read that state as it is.
func (w *world) checkKstatus() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		muxes, backends := &v1alpha1.StorageMuxList{}, &v1alpha1.StorageBackendList{}
		g.Expect(cluster.List(context.Background(), muxes, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(cluster.List(context.Background(), backends, client.InNamespace(w.namespace))).To(Succeed())
		for i := range muxes.Items {
			m := &muxes.Items[i]
			expectReadRightly(g, v1alpha1.KindStorageMux, m, m.Status.ObservedGeneration, m.Status.Conditions)
		}
		for i := range backends.Items {
			b := &backends.Items[i]
			expectReadRightly(g, v1alpha1.KindStorageBackend, b, b.Status.ObservedGeneration, b.Status.Conditions)
		}
	}).WithTimeout(soon).Should(Succeed())
}

func expectReadRightly(g Gomega, kind string, object client.Object, observed int64, conditions []metav1.Condition) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	g.Expect(err).NotTo(HaveOccurred())
	u := unstructuredOf(kind, fields)
	result, err := status.Compute(u)
	g.Expect(err).NotTo(HaveOccurred())
	about := kind + " " + object.GetName()

	is := func(condition string) bool { return meta.IsStatusConditionTrue(conditions, condition) }
	stalled, reconciling := is(v1alpha1.ConditionStalled), is(v1alpha1.ConditionReconciling)
	g.Expect(stalled && reconciling).To(BeFalse(), "%s is both Stalled and Reconciling", about)
	for _, c := range conditions {
		whileTrue := c.Type == v1alpha1.ConditionStalled || c.Type == v1alpha1.ConditionReconciling || c.Type == v1alpha1.ConditionDraining
		g.Expect(whileTrue && c.Status != metav1.ConditionTrue).To(BeFalse(), "%s has %s=%s, which is there only while it is True", about, c.Type, c.Status)
		g.Expect(c.ObservedGeneration).To(BeNumerically("<=", object.GetGeneration()), "%s: %s", about, c.Type)
	}
	want := status.CurrentStatus
	switch {
	case object.GetDeletionTimestamp() != nil:
		want = status.TerminatingStatus
	case observed != object.GetGeneration() || reconciling:
		want = status.InProgressStatus
	case stalled:
		want = status.FailedStatus
	case meta.FindStatusCondition(conditions, v1alpha1.ConditionReady) != nil && !is(v1alpha1.ConditionReady):
		want = status.InProgressStatus
	}
	g.Expect(result.Status).To(Equal(want), "%s, of which kstatus says %q: %+v", about, result.Message, conditions)
}
