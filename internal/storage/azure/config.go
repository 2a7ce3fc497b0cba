package azure

import (
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Config says which container, and as whom.
type Config struct {
	// Endpoint is the address of the account's blob service,
	// "https://account.blob.core.windows.net".
	Endpoint  string
	Container string
	// Prefix is put before every key.
	Prefix string
	Auth   Auth
	// CABundle holds PEM certificates that are trusted instead of the
	// system's; empty means the system's.
	CABundle []byte
	// MaxInFlight is how many requests are expected at once; 0 is 512.
	MaxInFlight int
}

// AuthType says where credentials come from.
type AuthType int

// Types of credentials.
const (
	// Anonymous requests carry none: the container is public.
	Anonymous AuthType = iota
	// Key is the account's name and one of its keys.
	Key
	// SAS is a shared access signature.
	SAS
	// Ambient is the identity of the pod or of the machine.
	Ambient
)

// Auth says as whom requests are made. The zero value is nobody.
type Auth struct {
	Type AuthType
	// Account and Key are for type Key; Key is in base64.
	Account, Key string
	// SASToken, for type SAS, is a query without the "?".
	SASToken string
}

// client makes the SDK's client of the container. It does no I/O.
func (c Config) client(transport policy.Transporter) (*container.Client, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, storage.Errorf(storage.CodeRejected, "New", "the endpoint must be one such as https://account.blob.core.windows.net")
	}
	if c.Container == "" || strings.Contains(c.Container, "/") {
		return nil, storage.Errorf(storage.CodeRejected, "New", "a container is needed, whose name has no slash")
	}
	address := strings.TrimSuffix(c.Endpoint, "/") + "/" + url.PathEscape(c.Container)
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: transport,
		Retry:     policy.RetryOptions{MaxRetries: -1}, // retries are the mux's
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}}
	switch c.Auth.Type {
	case Key:
		key, err := container.NewSharedKeyCredential(c.Auth.Account, c.Auth.Key)
		if err != nil || c.Auth.Account == "" || c.Auth.Key == "" {
			return nil, storage.Errorf(storage.CodeRejected, "New", "an account and one of its keys, in base64, are needed")
		}
		return container.NewClientWithSharedKeyCredential(address, key, options)
	case SAS:
		query := strings.TrimPrefix(c.Auth.SASToken, "?")
		if _, err := url.ParseQuery(query); err != nil || query == "" {
			return nil, storage.Errorf(storage.CodeRejected, "New", "the shared access signature must be a query such as sv=...&sig=...")
		}
		return container.NewClientWithNoCredential(address+"?"+query, options)
	case Ambient:
		identity, err := ambient(transport)
		if err != nil {
			return nil, storage.Errorf(storage.CodeRejected, "New", "there is no ambient identity").WithCause(err)
		}
		return container.NewClient(address, identity, options)
	default:
		return container.NewClientWithNoCredential(address, options)
	}
}

// ambient is the workload identity of the pod if it has one, else the managed
// identity of the machine.
func ambient(transport policy.Transporter) (azcore.TokenCredential, error) {
	options := azcore.ClientOptions{Transport: transport}
	if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "" {
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	}
	return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: options})
}

// expiry is when a shared access signature ends, or zero.
func (a Auth) expiry() time.Time {
	query, err := url.ParseQuery(strings.TrimPrefix(a.SASToken, "?"))
	if err != nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", "2006-01-02"} {
		if t, err := time.Parse(layout, query.Get("se")); err == nil {
			return t
		}
	}
	return time.Time{}
}
