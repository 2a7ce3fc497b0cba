package render

import (
	"fmt"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// frontend resolves what the endpoint needs. Secrets that are gone or invalid
// keep what the stored document has; without that the result is nil. So it is for
// proxy type None, where only proxies that are about to end have one.
func (t *topology) frontend() *muxconfig.Frontend {
	if !HasWorkload(t.facts.Mux) && !t.facts.Standalone {
		if t.facts.Stored == nil {
			return nil
		}
		return &t.facts.Stored.Frontend
	}
	spec := t.facts.Mux.Spec.Frontend
	wire := &muxconfig.Frontend{Bucket: t.facts.Mux.FrontendBucket(), Domains: spec.Domains, Auth: muxconfig.FrontendSigV4}
	complete := true
	if spec.Auth.Type == v1alpha1.FrontendAuthNone {
		wire.Auth = muxconfig.FrontendNone
	} else if len(spec.Auth.SecretRefs) == 0 {
		wire.KeyPairs = []muxconfig.KeyPair{t.facts.Material.Client}
	} else {
		for i, ref := range spec.Auth.SecretRefs {
			pair, v := keyPair(t.facts, fmt.Sprintf("spec.frontend.auth.secretRefs[%d]", i), ref.Name)
			if !v.OK {
				t.problems = append(t.problems, v)
				complete = false
				continue
			}
			wire.KeyPairs = append(wire.KeyPairs, pair)
		}
		if !complete && t.facts.Stored != nil && len(t.facts.Stored.Frontend.KeyPairs) > 0 {
			wire.KeyPairs, complete = t.facts.Stored.Frontend.KeyPairs, true
		}
	}
	if ref := spec.TLSSecretRef; ref != nil {
		pair, v := certificate(t.facts, "spec.frontend.tlsSecretRef", ref.Name)
		switch {
		case v.OK:
			wire.TLS = pair
		case t.facts.Stored != nil && t.facts.Stored.Frontend.TLS != nil:
			t.problems = append(t.problems, v)
			wire.TLS = t.facts.Stored.Frontend.TLS
		default:
			t.problems = append(t.problems, v)
			complete = false
		}
	}
	if !complete {
		return nil
	}
	return wire
}
