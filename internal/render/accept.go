package render

import "github.com/suaveplan/storagemux/api/v1alpha1"

// muxRules are asked in order; the first that refuses decides.
var muxRules = []func(Facts) Verdict{
	topologyIsSound,
	proxiesMayShareStores,
	standaloneNeedsKeys,
}

// AcceptMux says whether the mux can be served at all, from its spec and those
// of the muxes in it. It does not ask whether what they refer to exists.
func AcceptMux(f Facts) Verdict {
	f = withCandidates(f)
	for _, rule := range muxRules {
		if v := rule(f); !v.OK {
			return v
		}
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid"}
}

var pass = Verdict{OK: true}

func topologyIsSound(f Facts) Verdict { return walkSpecs(f, nil) }

// proxiesMayShareStores refuses several proxies over a store that only one of
// them can see.
func proxiesMayShareStores(f Facts) Verdict {
	if f.Standalone || !HasWorkload(f.Mux) || Replicas(f.Mux) <= 1 {
		return pass
	}
	verdict := pass
	_ = walkSpecs(f, func(path string, kind v1alpha1.MemberKind, name string) {
		if kind != v1alpha1.MemberKindStorageBackend || !verdict.OK {
			return
		}
		if what := singleProxyStore(f, f.Backends[name]); what != "" {
			verdict = refuse(v1alpha1.ReasonSingleReplicaRequired, "spec.proxy.replicas must be 1: StorageBackend %s (member %s) is %s", name, path, what)
		}
	})
	return verdict
}

// HasWorkload reports whether mux has proxies of its own.
func HasWorkload(mux *v1alpha1.StorageMux) bool {
	return mux.Spec.Proxy.Type != v1alpha1.ProxyTypeNone
}

// singleProxyStore says what about b's store keeps it to one proxy, or "".
func singleProxyStore(f Facts, b *v1alpha1.StorageBackend) string {
	switch {
	case b == nil:
		return ""
	case b.Spec.Memory != nil:
		return "in the memory of one proxy"
	case b.Spec.File != nil && b.Spec.File.PersistentVolumeClaim != nil &&
		f.Claims[b.Spec.File.PersistentVolumeClaim.ClaimName].SingleNode:
		return "on a ReadWriteOnce claim"
	}
	return ""
}

func standaloneNeedsKeys(f Facts) Verdict {
	auth := f.Mux.Spec.Frontend.Auth
	if f.Standalone && auth.Type != v1alpha1.FrontendAuthNone && len(auth.SecretRefs) == 0 {
		return refuse(v1alpha1.ReasonInvalid, "spec.frontend.auth.secretRefs must name a Secret with a key pair, or type must be None, outside a cluster")
	}
	return pass
}

// AcceptBackend says whether a StorageBackend can be served at all.
func AcceptBackend(b *v1alpha1.StorageBackend, standalone bool) Verdict {
	switch {
	case b.Spec.Type() == "":
		return refuse(v1alpha1.ReasonInvalid, "spec must have exactly one type")
	case b.Spec.File != nil && b.Spec.File.Path != "" && !standalone:
		return refuse(v1alpha1.ReasonPathNotInCluster, "spec.file.path is for storagemux serve; in a cluster spec.file.persistentVolumeClaim must be set")
	case b.Spec.File != nil && b.Spec.File.PersistentVolumeClaim != nil && standalone:
		return refuse(v1alpha1.ReasonInvalid, "spec.file.path must be set outside a cluster, in place of persistentVolumeClaim")
	case b.Spec.Fallback != nil:
		if v := acceptFallback(b, standalone); !v.OK {
			return v
		}
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid"}
}

// Replicas is how many proxies mux is to have.
func Replicas(mux *v1alpha1.StorageMux) int32 {
	if mux.Spec.Proxy.Replicas == nil {
		return 2
	}
	return *mux.Spec.Proxy.Replicas
}
