package v1alpha1

// SecretReference names a Secret in the namespace of the object that refers to it.
type SecretReference struct {
	// name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CABundleReference names a key of a ConfigMap in the namespace of the object that refers to it.
type CABundleReference struct {
	// name of the ConfigMap.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key of the ConfigMap that holds the certificates, in PEM form.
	//
	// +optional
	// +kubebuilder:default="ca.crt"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// AuthType says how proxies prove to a store who they are.
//
// +kubebuilder:validation:Enum=Secret;Ambient;Anonymous
type AuthType string

const (
	// AuthTypeSecret takes the credentials from a Secret.
	AuthTypeSecret AuthType = "Secret"

	// AuthTypeAmbient takes the identity of the proxy's pod: an IAM role for service accounts, a workload identity or the
	// instance's metadata. The ServiceAccount's annotations are set in the mux, as proxy.serviceAccountAnnotations.
	AuthTypeAmbient AuthType = "Ambient"

	// AuthTypeAnonymous sends no credentials.
	AuthTypeAnonymous AuthType = "Anonymous"
)

// BackendAuth says with which credentials proxies call a store.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Secret') == has(self.secretRef)",message="secretRef must be set when type is Secret, and must not be set otherwise"
type BackendAuth struct {
	// type of the credentials: Secret, Ambient (the identity of the proxy's pod) or Anonymous (none).
	//
	// +optional
	// +kubebuilder:default=Secret
	Type AuthType `json:"type,omitempty"`

	// secretRef names the Secret that holds the credentials, in the same namespace. Required with type Secret. When the Secret
	// changes, proxies try the new credentials before they let go of the old ones; when it is gone or invalid, they keep the
	// last ones that they had.
	//
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}
