package render

import (
	"crypto/tls"
	"crypto/x509"
	"path"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Defaults that the schema sets too, for objects that never met it.
const (
	defaultMaxInFlight  = 512
	defaultMemory       = 64 << 20
	defaultDrainTimeout = 10 * time.Minute
	defaultCheckEvery   = 10 * time.Second
	defaultCheckTimeout = 2 * time.Second
)

// ResolveBackend says whether all that b refers to exists and can be used.
func ResolveBackend(b *v1alpha1.StorageBackend, f Facts) Verdict {
	f = withCandidates(f)
	_, v := wireBackend(b, f)
	if v.OK && b.Spec.Fallback != nil {
		return candidatesExist(b, f)
	}
	return v
}

// wireBackend returns b as proxies get it. Where the verdict refuses, the
// result must not be used.
func wireBackend(b *v1alpha1.StorageBackend, f Facts) (muxconfig.Backend, Verdict) {
	wire := muxconfig.Backend{
		Name:        b.Name,
		UID:         string(b.UID),
		Timeout:     muxconfig.Duration(b.Spec.Timeout.Or(0)),
		MaxInFlight: valueOr(b.Spec.MaxInFlight, defaultMaxInFlight),
	}
	if check := b.Spec.HealthCheck; check != nil {
		wire.HealthCheck = &muxconfig.HealthCheck{
			Interval: muxconfig.Duration(check.Interval.Or(defaultCheckEvery)),
			Timeout:  muxconfig.Duration(check.Timeout.Or(defaultCheckTimeout)),
		}
	}
	v := pass
	switch {
	case b.Spec.S3 != nil:
		wire.S3, v = wireS3(b.Spec.S3, f)
	case b.Spec.HTTP != nil:
		wire.HTTP, v = wireHTTP(b.Spec.HTTP, f)
		if ladder, _, inline := strings.Cut(b.Name, "/"); v.OK && inline && f.Backends[ladder] != nil {
			wire.HTTP.Guard = guardOf(f.Backends[ladder], f.Standalone)
		}
	case b.Spec.Bunny != nil:
		wire.Bunny, v = wireBunny(b.Spec.Bunny, f)
	case b.Spec.Swift != nil:
		wire.Swift, v = wireSwift(b.Spec.Swift, f)
	case b.Spec.Azure != nil:
		wire.Azure, v = wireAzure(b.Spec.Azure, f)
	case b.Spec.File != nil:
		claim := b.Spec.File.PersistentVolumeClaim
		if claim == nil {
			wire.File = &muxconfig.File{Path: b.Spec.File.Path}
			break
		}
		if _, ok := f.Claims[claim.ClaimName]; !ok {
			v = refuse(v1alpha1.ReasonClaimNotFound, "spec.file.persistentVolumeClaim: no PersistentVolumeClaim is named %s", claim.ClaimName)
			break
		}
		wire.File = &muxconfig.File{Path: path.Join(claimsDir, claim.ClaimName, claim.SubPath)}
	case b.Spec.Memory != nil:
		wire.Memory = &muxconfig.Memory{SizeLimit: defaultMemory}
		if limit := b.Spec.Memory.SizeLimit; limit != nil {
			wire.Memory.SizeLimit = limit.Value()
		}
	case b.Spec.Fallback != nil:
		wire.Fallback, v = wireFallback(b, f)
	}
	if v.OK {
		v = Verdict{OK: true, Reason: v1alpha1.ReasonResolvedRefs, Message: "every reference is resolved"}
	}
	return wire, v
}

func wireS3(spec *v1alpha1.S3Backend, f Facts) (*muxconfig.S3, Verdict) {
	wire := &muxconfig.S3{
		Endpoint: spec.Endpoint, Region: spec.Region, Bucket: spec.Bucket, Prefix: spec.Prefix,
		AddressingStyle: string(spec.AddressingStyle),
		Auth:            muxconfig.S3Auth{Type: string(spec.Auth.Type)},
	}
	if wire.Auth.Type == "" {
		wire.Auth.Type = muxconfig.AuthSecret
	}
	if wire.Auth.Type == muxconfig.AuthSecret {
		if spec.Auth.SecretRef == nil {
			return nil, refuse(v1alpha1.ReasonInvalidSecret, "spec.s3.auth.secretRef must be set with type Secret")
		}
		const field = "spec.s3.auth.secretRef"
		pair, v := keyPair(f, field, spec.Auth.SecretRef.Name)
		if !v.OK {
			return nil, v
		}
		wire.Auth.AccessKeyID, wire.Auth.SecretAccessKey = pair.AccessKeyID, pair.SecretAccessKey
		wire.Auth.SessionToken = muxconfig.Secret(f.Secrets[spec.Auth.SecretRef.Name].Data[v1alpha1.SecretKeyAWSSessionToken])
	}
	if ref := spec.CABundleRef; ref != nil {
		bundle, v := caBundle(f, "spec.s3.caBundleRef", ref)
		if !v.OK {
			return nil, v
		}
		wire.CABundle = bundle
	}
	return wire, pass
}

// keyPair reads AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of a Secret.
func keyPair(f Facts, field, name string) (muxconfig.KeyPair, Verdict) {
	values, v := secretValues(f, field, name, v1alpha1.SecretKeyAWSAccessKeyID, v1alpha1.SecretKeyAWSSecretAccessKey)
	if !v.OK {
		return muxconfig.KeyPair{}, v
	}
	return muxconfig.KeyPair{AccessKeyID: values[0], SecretAccessKey: muxconfig.Secret(values[1])}, pass
}

// secretValues returns the values of keys that must not be empty.
func secretValues(f Facts, field, name string, keys ...string) ([]string, Verdict) {
	secret, ok := f.Secrets[name]
	switch {
	case !ok:
		return nil, refuse(v1alpha1.ReasonSecretNotFound, "%s: no Secret is named %s", field, name)
	case secret.Refused:
		return nil, refuse(v1alpha1.ReasonSecretNotPermitted, "%s: Secret %s lacks the label that this operator requires", field, name)
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		if len(secret.Data[key]) == 0 {
			return nil, refuse(v1alpha1.ReasonInvalidSecret, "%s: Secret %s must have a value under key %s", field, name, key)
		}
		values[i] = string(secret.Data[key])
	}
	return values, pass
}

// certificate reads a Secret of type kubernetes.io/tls.
func certificate(f Facts, field, name string) (*muxconfig.KeyCert, Verdict) {
	values, v := secretValues(f, field, name, v1alpha1.SecretKeyTLSCertificate, v1alpha1.SecretKeyTLSPrivateKey)
	if !v.OK {
		return nil, v
	}
	if _, err := tls.X509KeyPair([]byte(values[0]), []byte(values[1])); err != nil {
		return nil, refuse(v1alpha1.ReasonInvalidSecret, "%s: Secret %s must have a PEM certificate under %s and its key under %s",
			field, name, v1alpha1.SecretKeyTLSCertificate, v1alpha1.SecretKeyTLSPrivateKey)
	}
	return &muxconfig.KeyCert{Cert: values[0], Key: muxconfig.Secret(values[1])}, pass
}

func caBundle(f Facts, field string, ref *v1alpha1.CABundleReference) (string, Verdict) {
	key := ref.Key
	if key == "" {
		key = "ca.crt"
	}
	data, ok := f.ConfigMaps[ref.Name]
	if !ok {
		return "", refuse(v1alpha1.ReasonConfigMapNotFound, "%s: no ConfigMap is named %s", field, ref.Name)
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(data[key])) {
		return "", refuse(v1alpha1.ReasonInvalidConfigMap, "%s: ConfigMap %s must have a PEM certificate under key %s", field, ref.Name, key)
	}
	return data[key], pass
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
