package render

import (
	"cmp"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

func wireBunny(spec *v1alpha1.BunnyBackend, f Facts) (*muxconfig.Bunny, Verdict) {
	const field = "spec.bunny.auth.secretRef"
	if spec.Auth.SecretRef == nil {
		return nil, refuse(v1alpha1.ReasonInvalidSecret, "%s must be set", field)
	}
	values, v := secretValues(f, field, spec.Auth.SecretRef.Name, v1alpha1.SecretKeyBunnyAccessKey)
	if !v.OK {
		return nil, v
	}
	return &muxconfig.Bunny{
		Zone: spec.Zone, Region: spec.Region, Endpoint: spec.Endpoint, AccessKey: muxconfig.Secret(values[0]),
	}, pass
}

func wireSwift(spec *v1alpha1.SwiftBackend, f Facts) (*muxconfig.Swift, Verdict) {
	const field = "spec.swift.auth.secretRef"
	if spec.Auth.SecretRef == nil {
		return nil, refuse(v1alpha1.ReasonInvalidSecret, "%s must be set", field)
	}
	name := spec.Auth.SecretRef.Name
	values, v := secretValues(f, field, name, v1alpha1.SecretKeySwiftUsername, v1alpha1.SecretKeySwiftPassword)
	if !v.OK {
		return nil, v
	}
	data := f.Secrets[name].Data
	wire := &muxconfig.Swift{
		AuthURL: spec.AuthURL, Container: spec.Container, Prefix: spec.Prefix,
		Auth: muxconfig.SwiftAuth{
			Username: values[0], Password: muxconfig.Secret(values[1]),
			Project:       string(data[v1alpha1.SecretKeySwiftProject]),
			UserDomain:    string(data[v1alpha1.SecretKeySwiftUserDomain]),
			ProjectDomain: string(data[v1alpha1.SecretKeySwiftProjectDomain]),
			Region:        string(data[v1alpha1.SecretKeySwiftRegion]),
		},
	}
	if ref := spec.CABundleRef; ref != nil {
		if wire.CABundle, v = caBundle(f, "spec.swift.caBundleRef", ref); !v.OK {
			return nil, v
		}
	}
	return wire, pass
}

func wireAzure(spec *v1alpha1.AzureBackend, f Facts) (*muxconfig.Azure, Verdict) {
	wire := &muxconfig.Azure{
		Endpoint: spec.Endpoint, Container: spec.Container, Prefix: spec.Prefix,
		Auth: muxconfig.AzureAuth{Type: cmp.Or(string(spec.Auth.Type), muxconfig.AuthSecret)},
	}
	if wire.Auth.Type != muxconfig.AuthSecret {
		return wire, pass
	}
	const field = "spec.azure.auth.secretRef"
	if spec.Auth.SecretRef == nil {
		return nil, refuse(v1alpha1.ReasonInvalidSecret, "%s must be set with type Secret", field)
	}
	name := spec.Auth.SecretRef.Name
	if _, v := secretValues(f, field, name); !v.OK {
		return nil, v
	}
	data := f.Secrets[name].Data
	wire.Auth.Account = string(data[v1alpha1.SecretKeyAzureAccount])
	wire.Auth.Key = muxconfig.Secret(data[v1alpha1.SecretKeyAzureKey])
	wire.Auth.SASToken = muxconfig.Secret(data[v1alpha1.SecretKeyAzureSASToken])
	if problem := wire.Auth.Problem(); problem != "" {
		return nil, refuse(v1alpha1.ReasonInvalidSecret, "%s: Secret %s %s", field, name, problem)
	}
	return wire, pass
}
