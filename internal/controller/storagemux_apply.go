package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch

// conflictRecheck is how often to look whether somebody else's object still has
// the name of a child: nothing that does not carry our labels is watched.
const conflictRecheck = time.Minute

// applyChildren brings every child into the form that render gives it. What
// belongs to others is left alone, and the other children are applied all the
// same. Of a spec that is refused nothing is applied: the children stay as they
// are.
func (r *muxReconciler) applyChildren(ctx context.Context, scope *muxScope) error {
	if !render.HasWorkload(scope.mux) {
		return r.removeChildren(ctx, scope)
	}
	if replaced(scope.mux, scope.pods, r.render.ProxyBuild) {
		r.endUpgrade(client.ObjectKeyFromObject(scope.mux))
	}
	if scope.children != nil {
		scope.later(conflictRecheck)
		return nil
	}
	doc := scope.stored.wire()
	if doc == nil || !scope.result.Accepted.OK {
		return nil
	}
	mayReplace, failed := r.mayReplaceProxies(ctx, scope)
	for _, child := range render.Children(scope.facts, doc, r.render) {
		if child.Kind == "Deployment" && !mayReplace {
			continue
		}
		err := r.applyChild(ctx, scope.mux, child)
		var verdict render.Verdict
		switch {
		case err == nil || ending(err):
			continue
		case errors.Is(err, errForeign) || errors.Is(err, errFormer):
			verdict = notOurs(err, child.Kind, child.Name)
			scope.later(conflictRecheck)
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
			verdict = render.Verdict{Reason: v1alpha1.ReasonApplyFailed, Message: fmt.Sprintf("%s %s: %v", child.Kind, child.Name, err)}
			failed = errors.Join(failed, err)
		default:
			failed = errors.Join(failed, err)
			continue
		}
		if scope.children == nil {
			scope.children = &verdict
		}
	}
	return failed
}

// ending reports whether nothing can be created any more because the namespace
// is being deleted, and the mux with it.
func ending(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// applyChild applies one child unless it already has this form.
func (r *muxReconciler) applyChild(ctx context.Context, mux *v1alpha1.StorageMux, child render.Child) error {
	object, intent, err := intentOf(child)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: mux.Namespace, Name: child.Name}
	existing := metadataOf(object.GroupVersionKind())
	err = r.client.Get(ctx, key, existing)
	if apierrors.IsNotFound(err) {
		// Objects of others do not show in a cache that selects by label.
		err = r.live.Get(ctx, key, existing)
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("look up %s %s: %w", child.Kind, key, err)
	case ownership(metav1.GetControllerOf(existing), mux) != nil:
		return ownership(metav1.GetControllerOf(existing), mux)
	case existing.DeletionTimestamp != nil:
		return nil // its end wakes us
	case r.applied.same(mux, child, intent, existing):
		return nil
	default:
		if kept, err := r.stands(ctx, mux, child, intent, object); err != nil || kept {
			return err
		}
		// An object that took the place of this one since is a conflict.
		object.SetUID(existing.UID)
	}
	wanted := object.DeepCopy()
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
	if apierrors.IsInvalid(err) && wanted.GetUID() != "" {
		object = wanted
		err = r.repair(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", child.Kind, key, err)
	}
	r.applied.keep(mux, child, intent, object)
	return nil
}

// stands reports whether a child that is there is as wanted although this process
// has not seen it so, as after a restart, and remembers it then.
func (r *muxReconciler) stands(ctx context.Context, mux *v1alpha1.StorageMux, child render.Child,
	intent [sha256.Size]byte, wanted *unstructured.Unstructured,
) (bool, error) {
	if r.applied.other(mux, child, intent) {
		return false, nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read %s %s: %w", child.Kind, client.ObjectKeyFromObject(wanted), err)
	}
	if ownership(metav1.GetControllerOf(live), mux) != nil || !fulfils(live, wanted, string(fieldOwner)) {
		return false, nil
	}
	r.applied.keep(mux, child, intent, live)
	return true, nil
}

// repair applies a child that somebody has changed so that, put together with
// what is wanted, it is invalid: a port of the Service under another number, for
// one, which an apply leaves beside ours. A merge patch replaces whole lists.
func (r *muxReconciler) repair(ctx context.Context, object *unstructured.Unstructured) error {
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	if err := r.client.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, data), fieldOwner); err != nil {
		return err
	}
	return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
}

// intentOf returns the child in a form to which an UID can be added, and a hash
// of what is wanted of it.
func intentOf(child render.Child) (*unstructured.Unstructured, [sha256.Size]byte, error) {
	data, err := json.Marshal(child.Apply)
	if err != nil {
		return nil, [sha256.Size]byte{}, fmt.Errorf("encode %s %s: %w", child.Kind, child.Name, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, [sha256.Size]byte{}, fmt.Errorf("decode %s %s: %w", child.Kind, child.Name, err)
	}
	return object, sha256.Sum256(data), nil
}

// appliedChildren remembers in which form each child was applied last, and what
// it looked like then, so that nothing is applied twice.
type appliedChildren struct {
	mu    sync.Mutex
	muxes map[types.NamespacedName]map[string]appliedChild
}

type appliedChild struct {
	intent [sha256.Size]byte
	look   string
}

func (a *appliedChildren) same(mux *v1alpha1.StorageMux, child render.Child, intent [sha256.Size]byte, existing metav1.Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.muxes[client.ObjectKeyFromObject(mux)][child.Kind]
	return ok && known.intent == intent && known.look == look(child, existing)
}

// other reports whether the child was applied in another form last.
func (a *appliedChildren) other(mux *v1alpha1.StorageMux, child render.Child, intent [sha256.Size]byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.muxes[client.ObjectKeyFromObject(mux)][child.Kind]
	return ok && known.intent != intent
}

func (a *appliedChildren) keep(mux *v1alpha1.StorageMux, child render.Child, intent [sha256.Size]byte, now metav1.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.muxes == nil {
		a.muxes = map[types.NamespacedName]map[string]appliedChild{}
	}
	key := client.ObjectKeyFromObject(mux)
	if a.muxes[key] == nil {
		a.muxes[key] = map[string]appliedChild{}
	}
	a.muxes[key][child.Kind] = appliedChild{intent, look(child, now)}
}

func (a *appliedChildren) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.muxes, key)
}

// look is what would show that somebody changed a child. Where the API server
// counts generations, that leaves out status, which changes all the time.
func look(child render.Child, o metav1.Object) string {
	if child.Kind == "Secret" || o.GetGeneration() == 0 {
		return fmt.Sprint(o.GetUID(), " ", o.GetResourceVersion())
	}
	var owners []types.UID
	for _, owner := range o.GetOwnerReferences() {
		owners = append(owners, owner.UID)
	}
	return fmt.Sprint(o.GetUID(), " ", o.GetGeneration(), sorted(o.GetLabels()), sorted(o.GetAnnotations()), owners)
}

func sorted(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key+"="+m[key])
	}
	return list
}
