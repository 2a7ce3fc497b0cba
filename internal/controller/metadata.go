package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// fieldOwner is under which name all fields are written.
const fieldOwner = client.FieldOwner("storagemux")

// metadataOf makes an empty object that reads metadata only.
func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(kind)
	return meta
}

// belongsTo reports whether mux controls object.
func belongsTo(object metav1.Object, mux *v1alpha1.StorageMux) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID == mux.UID
}
