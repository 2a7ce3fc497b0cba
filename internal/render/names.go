package render

import (
	"fmt"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// Region is what clients sign for; the endpoint takes any.
const Region = "us-east-1"

// Ports of a proxy pod.
const (
	PortS3     = 8080
	PortAdmin  = 8081
	PortHealth = 8082
)

// Paths in a proxy pod.
const (
	configDir = "/etc/storagemux/config"
	stateDir  = "/var/run/storagemux"
	spoolDir  = "/var/lib/storagemux/spool"
	claimsDir = "/var/lib/storagemux/claims"
)

// ChildName is the name of most children of a mux.
func ChildName(mux string) string { return mux + "-storagemux" }

// ConfigSecretName is the name of the Secret that holds the document.
func ConfigSecretName(mux string) string { return mux + "-storagemux-config" }

// ConnectionSecretName is the name of the Secret that applications load.
func ConnectionSecretName(mux string) string { return mux + "-storagemux-connection" }

// Endpoint is the URL of the mux inside the cluster, "" for proxy type None.
func Endpoint(mux *v1alpha1.StorageMux) string {
	switch {
	case mux.Spec.Proxy.Type == v1alpha1.ProxyTypeNone:
		return ""
	case mux.Spec.Frontend.TLSSecretRef != nil:
		return fmt.Sprintf("https://%s.%s.svc", ChildName(mux.Name), mux.Namespace)
	default:
		return fmt.Sprintf("http://%s.%s.svc", ChildName(mux.Name), mux.Namespace)
	}
}

// SelectorLabels select the proxy pods of a mux.
func SelectorLabels(mux string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:     v1alpha1.LabelNameValue,
		v1alpha1.LabelInstance: mux,
		v1alpha1.LabelMux:      mux,
	}
}

// ChildLabels are on every child of a mux.
func ChildLabels(mux string) map[string]string {
	labels := SelectorLabels(mux)
	labels[v1alpha1.LabelManagedBy] = v1alpha1.LabelManagedByValue
	return labels
}
