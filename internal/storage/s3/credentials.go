package s3

import (
	"context"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/suaveplan/storagemux/internal/storage"
)

// keys sign a request. Without an id it is not signed.
type keys struct{ id, secret, token string }

// provider returns the keys to use now.
type provider func(ctx context.Context) (keys, error)

func (a Auth) provider(region string, transport http.RoundTripper) (provider, error) {
	switch a.Type {
	case Static:
		if a.AccessKeyID == "" || a.SecretAccessKey == "" {
			return nil, invalid("static credentials need an access key id and a secret access key")
		}
		k := keys{a.AccessKeyID, a.SecretAccessKey, a.SessionToken}
		return func(context.Context) (keys, error) { return k, nil }, nil
	case Anonymous:
		return func(context.Context) (keys, error) { return keys{}, nil }, nil
	case Ambient:
		return ambient(region, transport), nil
	default:
		return nil, invalid("the kind of authentication %q is unknown", a.Type)
	}
}

// ambient asks each source in turn, and the one that answered again before its
// answer expires. Sources other than AWS's own are left out.
func ambient(region string, transport http.RoundTripper) provider {
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	chain := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{Region: region},
	})
	return func(ctx context.Context) (keys, error) {
		type answer struct {
			value credentials.Value
			err   error
		}
		if !chain.IsExpired() {
			value, err := chain.GetWithContext(&credentials.CredContext{Client: client})
			return keys{value.AccessKeyID, value.SecretAccessKey, value.SessionToken}, wrapAmbient(err)
		}
		// A retrieval serves all requests that wait for it, so it does not
		// end with the one that began it. The client's timeout ends it.
		done := make(chan answer, 1)
		go func() {
			value, err := chain.GetWithContext(&credentials.CredContext{Client: client})
			done <- answer{value, err}
		}()
		select {
		case a := <-done:
			if a.err == nil && a.value.SignerType.IsAnonymous() {
				return keys{}, storage.Errorf(storage.CodeAccessDenied, "", "the pod's surroundings hold no credentials")
			}
			return keys{a.value.AccessKeyID, a.value.SecretAccessKey, a.value.SessionToken}, wrapAmbient(a.err)
		case <-ctx.Done():
			return keys{}, storage.Interrupted(ctx, "", "waiting for credentials")
		}
	}
}

func wrapAmbient(err error) error {
	if err == nil {
		return nil
	}
	return storage.Errorf(storage.CodeUnavailable, "", "getting credentials from the pod's surroundings").WithCause(err)
}
