package v1alpha1

// FinalizerDrain holds an object until no proxy uses it any more: a StorageBackend that a mux renders, and a StorageMux that
// another one nests.
const FinalizerDrain = "storagemux.dev/drain"

// Annotations that users set. Each takes effect with the value AnnotationTrue and with no other.
const (
	// AnnotationForceRemoval, on a StorageBackend or StorageMux that is being deleted, grants a drain that is Blocked, even
	// where the mode's minimum or the last member that is up would forbid it.
	AnnotationForceRemoval = "storagemux.dev/force-removal"

	// AnnotationDataMoved, on a StorageBackend that is being deleted from a mux with keyspace spread, states that its objects
	// have been copied to other members, so that it need not be empty for its drain to be granted.
	AnnotationDataMoved = "storagemux.dev/data-moved"

	// AnnotationPaused stops the controller from changing anything on behalf of the object. What is served goes on being
	// served, also by the muxes that contain the object and are not paused themselves; a deletion waits.
	AnnotationPaused = "storagemux.dev/paused"

	// AnnotationTrue is the value that switches an annotation of this list on.
	AnnotationTrue = "true"
)

// AnnotationProxyBuild, on the Deployment of a StorageMux and on its pods, tells the builds of proxies apart: an operator that brings
// another one replaces the proxies of a few muxes at a time.
const AnnotationProxyBuild = "storagemux.dev/proxy-build"

// Labels of every child of a StorageMux.
const (
	// LabelMux names the StorageMux that a child belongs to.
	LabelMux = "storagemux.dev/mux"

	// LabelName is the well-known label for the application's name; its value is LabelNameValue.
	LabelName = "app.kubernetes.io/name"

	// LabelInstance is the well-known label for the instance; its value is the mux's name.
	LabelInstance = "app.kubernetes.io/instance"

	// LabelManagedBy is the well-known label for the manager; its value is LabelManagedByValue.
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// LabelNameValue is the value of LabelName.
	LabelNameValue = "storagemux"

	// LabelManagedByValue is the value of LabelManagedBy.
	LabelManagedByValue = "storagemux-operator"
)

// Keys of the Secrets that users write. Which of them a Secret needs depends on the type of the backend, and is said in the
// documentation of that type's auth field.
const (
	SecretKeyAWSAccessKeyID     = "AWS_ACCESS_KEY_ID"
	SecretKeyAWSSecretAccessKey = "AWS_SECRET_ACCESS_KEY"
	SecretKeyAWSSessionToken    = "AWS_SESSION_TOKEN"

	SecretKeyHTTPUsername     = "username"
	SecretKeyHTTPPassword     = "password"
	SecretKeyHTTPToken        = "token"
	SecretKeyHTTPHeaderPrefix = "header."

	SecretKeyBunnyAccessKey = "accessKey"

	SecretKeySwiftUsername      = "OS_USERNAME"
	SecretKeySwiftPassword      = "OS_PASSWORD"
	SecretKeySwiftProject       = "OS_PROJECT_NAME"
	SecretKeySwiftUserDomain    = "OS_USER_DOMAIN_NAME"
	SecretKeySwiftProjectDomain = "OS_PROJECT_DOMAIN_NAME"
	SecretKeySwiftRegion        = "OS_REGION_NAME"

	SecretKeyAzureAccount  = "AZURE_STORAGE_ACCOUNT"
	SecretKeyAzureKey      = "AZURE_STORAGE_KEY"
	SecretKeyAzureSASToken = "AZURE_STORAGE_SAS_TOKEN"

	SecretKeyTLSCertificate = "tls.crt"
	SecretKeyTLSPrivateKey  = "tls.key"
)

// Keys that only the connection Secret has, besides the key pair under its AWS names. The operator writes that Secret for
// applications to load with envFrom.
const (
	ConnectionKeyEndpoint = "AWS_ENDPOINT_URL_S3"
	ConnectionKeyRegion   = "AWS_REGION"
	ConnectionKeyBucket   = "BUCKET"
)
