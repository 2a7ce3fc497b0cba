package render

import (
	"cmp"
	"strings"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

func wireHTTP(spec *v1alpha1.HTTPBackend, f Facts) (*muxconfig.HTTP, Verdict) {
	wire := &muxconfig.HTTP{URL: spec.URL, Flavor: cmp.Or(string(spec.Flavor), muxconfig.FlavorWebDAV)}
	if spec.Auth.SecretRef != nil {
		auth, v := httpAuth(f, "spec.http.auth.secretRef", spec.Auth.SecretRef.Name)
		if !v.OK {
			return nil, v
		}
		wire.Auth = auth
	}
	if ref := spec.CABundleRef; ref != nil {
		bundle, v := caBundle(f, "spec.http.caBundleRef", ref)
		if !v.OK {
			return nil, v
		}
		wire.CABundle = bundle
	}
	return wire, pass
}

// httpAuth reads username and password, token and header.NAME of a Secret.
func httpAuth(f Facts, field, name string) (muxconfig.HTTPAuth, Verdict) {
	if _, v := secretValues(f, field, name); !v.OK {
		return muxconfig.HTTPAuth{}, v
	}
	data := f.Secrets[name].Data
	auth := muxconfig.HTTPAuth{
		Username: string(data[v1alpha1.SecretKeyHTTPUsername]),
		Password: muxconfig.Secret(data[v1alpha1.SecretKeyHTTPPassword]),
		Token:    muxconfig.Secret(data[v1alpha1.SecretKeyHTTPToken]),
	}
	for key, value := range data {
		if header, is := strings.CutPrefix(key, v1alpha1.SecretKeyHTTPHeaderPrefix); is {
			if auth.Headers == nil {
				auth.Headers = map[string]muxconfig.Secret{}
			}
			auth.Headers[header] = muxconfig.Secret(value)
		}
	}
	problem := auth.Problem()
	if problem == "" && auth.Username == "" && auth.Token == "" && auth.Headers == nil {
		problem = "must have username and password, or token, or header.NAME"
	}
	if problem != "" {
		return muxconfig.HTTPAuth{}, refuse(v1alpha1.ReasonInvalidSecret, "%s: Secret %s %s", field, name, problem)
	}
	return auth, pass
}
