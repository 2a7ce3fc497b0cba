package controller

import (
	"context"
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/suaveplan/storagemux/internal/render"
)

func TestADocumentCarriesTheTransitionsUnderWhichThisProcessBecameLeader(t *testing.T) {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease"},
		Spec:       coordinationv1.LeaseSpec{LeaseTransitions: ptr.To[int32](3)},
	}
	c := fake.NewClientBuilder().WithScheme(NewScheme()).WithObjects(lease).Build()
	l := &leadership{live: c, lease: types.NamespacedName{Namespace: "ns", Name: "lease"}}
	expect := func(stored, want int64) {
		t.Helper()
		if got, err := l.transitions(context.Background(), stored); err != nil || got != want {
			t.Errorf("over a document of %d: got %d (%v), want %d", stored, got, err, want)
		}
	}
	expect(0, 3)
	expect(3, 3)
	// A document from before the lease was made anew.
	expect(8, 8)

	update(t, c, lease, 4)
	expect(2, 3)
	if _, err := l.transitions(context.Background(), 4); !errors.Is(err, render.ErrDeposed) {
		t.Errorf("over a document of its successor: %v, want ErrDeposed", err)
	}
	if got, err := (&leadership{}).transitions(context.Background(), 5); err != nil || got != 5 {
		t.Errorf("without election: got %d (%v), want 5", got, err)
	}
}

func update(t *testing.T, c client.Client, lease *coordinationv1.Lease, transitions int32) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec.LeaseTransitions = &transitions
	if err := c.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}
