package controller

import (
	"errors"

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

// Why an object is left alone.
var (
	errForeign = errors.New("the object belongs to somebody else")
	// errFormer: the garbage collector is about to remove the object.
	errFormer = errors.New("the object belongs to an earlier StorageMux of the same name")
)

// ownership returns nil if owner is mux, errFormer or errForeign.
func ownership(owner *metav1.OwnerReference, mux *v1alpha1.StorageMux) error {
	switch {
	case owner == nil:
		return errForeign
	case owner.UID == mux.UID:
		return nil
	case owner.Kind == v1alpha1.KindStorageMux && owner.Name == mux.Name:
		return errFormer
	default:
		return errForeign
	}
}
