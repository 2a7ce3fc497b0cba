package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mode says which members a request goes to.
//
// +kubebuilder:validation:Enum=failover;round-robin;weighted;sticky-by-key;shield;mirror
type Mode string

const (
	// ModeFailover asks the first member that is up, and the next when that one fails.
	ModeFailover Mode = "failover"

	// ModeRoundRobin asks the members in turn.
	ModeRoundRobin Mode = "round-robin"

	// ModeWeighted asks the members in proportion to their weights.
	ModeWeighted Mode = "weighted"

	// ModeStickyByKey asks the same member for the same key.
	ModeStickyByKey Mode = "sticky-by-key"

	// ModeShield reads from the first member, the origin, and from the others when it fails; writes go to all, and the origin
	// decides.
	ModeShield Mode = "shield"

	// ModeMirror reads from all members at once, the first answer wins; writes go to all, one success suffices.
	ModeMirror Mode = "mirror"
)

// Keyspace says which keys a member is expected to hold.
//
// +kubebuilder:validation:Enum=replicated;spread
type Keyspace string

const (
	// KeyspaceReplicated: every member holds every key, so that not-found from one is final.
	KeyspaceReplicated Keyspace = "replicated"

	// KeyspaceSpread: each key may live on any one member, so that not-found from one leads on to the next.
	KeyspaceSpread Keyspace = "spread"
)

// StickyHash maps keys to members in mode sticky-by-key.
//
// +kubebuilder:validation:Enum=fnv1a-modulo;rendezvous
type StickyHash string

const (
	// StickyHashFNV1aModulo is the 32-bit FNV-1a hash of the key modulo the number of members that are up. A change of that
	// number moves most keys.
	StickyHashFNV1aModulo StickyHash = "fnv1a-modulo"

	// StickyHashRendezvous gives each key to the member with the highest hash of both. A change moves only the keys of the member
	// that came or went.
	StickyHashRendezvous StickyHash = "rendezvous"
)

// FanoutPartialPolicy says what a write answers that some members took and others did not.
//
// +kubebuilder:validation:Enum=Succeed;Fail
type FanoutPartialPolicy string

const (
	// FanoutPartialSucceed answers with success, and an event names the members that missed the write.
	FanoutPartialSucceed FanoutPartialPolicy = "Succeed"

	// FanoutPartialFail answers with STORAGE_MUX.WRITE_FANOUT_PARTIAL. What was written stays.
	FanoutPartialFail FanoutPartialPolicy = "Fail"
)

// AllDownPolicy says what happens to a request while every member is down.
//
// +kubebuilder:validation:Enum=Try;Fail
type AllDownPolicy string

const (
	// AllDownTry sends one request at a time to the member that is due to recover first.
	AllDownTry AllDownPolicy = "Try"

	// AllDownFail answers 503 at once.
	AllDownFail AllDownPolicy = "Fail"
)

// StorageMuxSpec describes one S3 endpoint over several stores.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'weighted' || self.backends.all(b, has(b.weight))",fieldPath=".backends",message="backends[*].weight must be set on every backend when mode is weighted"
// +kubebuilder:validation:XValidation:rule="self.mode != 'weighted' || self.backends.exists(b, !has(b.weight) || b.weight > 0)",fieldPath=".backends",message="backends[*].weight must be greater than 0 on at least one backend when mode is weighted"
// +kubebuilder:validation:XValidation:rule="self.mode == 'weighted' || self.backends.all(b, !has(b.weight))",fieldPath=".backends",message="backends[*].weight must not be set unless mode is weighted"
// +kubebuilder:validation:XValidation:rule="self.mode != 'shield' || size(self.backends) >= 2",fieldPath=".backends",message="backends must have at least 2 entries when mode is shield: the origin first, then its mirrors"
// +kubebuilder:validation:XValidation:rule="self.keyspace != 'spread' || self.mode in ['failover', 'sticky-by-key', 'shield', 'mirror']",fieldPath=".keyspace",message="keyspace must be replicated when mode is round-robin or weighted: spread works with failover, sticky-by-key, shield and mirror"
// +kubebuilder:validation:XValidation:rule="self.mode == 'sticky-by-key' || !has(self.sticky)",fieldPath=".sticky",message="sticky must not be set unless mode is sticky-by-key"
type StorageMuxSpec struct {
	// mode says which backends a request goes to.
	// failover: the first that is up, then the next.
	// round-robin: each in turn.
	// weighted: in proportion to their weights.
	// sticky-by-key: the same one for the same key.
	// shield: reads from the first (the origin), then the others; writes to all, the origin decides.
	// mirror: reads from all at once, the first answer wins; writes to all, one success suffices.
	//
	// +required
	Mode Mode `json:"mode,omitempty"`

	// keyspace says what the backends hold.
	// replicated: every backend holds every key, so a key that one does not have does not exist.
	// spread: each key may live on any one backend, so a key is looked for further; only with failover, sticky-by-key, shield and
	// mirror.
	// There is no default, because the wrong choice loses sight of objects.
	//
	// +required
	Keyspace Keyspace `json:"keyspace,omitempty"`

	// backends are the members, in order: 1 to 64, with unique names.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Backends []Member `json:"backends,omitempty"`

	// sticky tunes mode sticky-by-key. Only with that mode. Unset: hash fnv1a-modulo.
	//
	// +optional
	Sticky *StickySpec `json:"sticky,omitempty"`

	// onFanoutPartial is what a write answers that some members took and others did not, in the modes that write to several
	// (shield, mirror). Succeed: success, and an event names the members that missed it. Fail: 503 with
	// STORAGE_MUX.WRITE_FANOUT_PARTIAL; what was written stays.
	//
	// +optional
	// +kubebuilder:default=Succeed
	OnFanoutPartial FanoutPartialPolicy `json:"onFanoutPartial,omitempty"`

	// backendTimeout is the timeout of every StorageBackend in this mux that sets none: the time to the first byte of an answer,
	// and for any stall of the store. It never limits a whole transfer. From 1ms to 1h.
	//
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || (duration(self) >= duration('1ms') && duration(self) <= duration('1h'))",message="backendTimeout must be between 1ms and 1h"
	BackendTimeout Duration `json:"backendTimeout,omitempty"`

	// retry is how often one store is asked again before the mode moves on.
	//
	// +optional
	// +kubebuilder:default={}
	Retry RetrySpec `json:"retry,omitzero"`

	// health is how members that failed come back.
	//
	// +optional
	// +kubebuilder:default={}
	Health HealthSpec `json:"health,omitzero"`

	// frontend is the S3 endpoint that applications see.
	//
	// +optional
	// +kubebuilder:default={}
	Frontend FrontendSpec `json:"frontend,omitzero"`

	// proxy is the workload that serves this mux.
	//
	// +optional
	// +kubebuilder:default={}
	Proxy ProxySpec `json:"proxy,omitzero"`
}

// Member is one backend of a mux: a StorageBackend, or another StorageMux.
type Member struct {
	// name of the member in this mux, in its status, metrics, spans and logs. Without ref it is also the name of the
	// StorageBackend.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower-case letters, digits and '-', with a letter or digit at both ends"
	Name string `json:"name"`

	// ref is the resource behind this member, in the same namespace. Unset: the StorageBackend with the member's name.
	//
	// +optional
	Ref *MemberReference `json:"ref,omitempty"`

	// weight is this member's share of the requests, in proportion to the sum of all weights; 0 takes it out. Required in mode
	// weighted, where one weight at least must be greater than 0, and refused in any other.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`
}

// Target returns the kind and name of the resource behind the member, with the defaults of an unset or partial ref applied.
func (m *Member) Target() (MemberKind, string) {
	kind, name := MemberKindStorageBackend, m.Name
	if m.Ref == nil {
		return kind, name
	}
	if m.Ref.Kind != "" {
		kind = m.Ref.Kind
	}
	if m.Ref.Name != "" {
		name = m.Ref.Name
	}
	return kind, name
}

// MemberKind is the kind of resource behind a member.
//
// +kubebuilder:validation:Enum=StorageBackend;StorageMux
type MemberKind string

// The kinds of members.
const (
	MemberKindStorageBackend MemberKind = KindStorageBackend
	MemberKindStorageMux     MemberKind = KindStorageMux
)

// MemberReference names the resource behind a member.
type MemberReference struct {
	// kind of the resource: StorageBackend, or StorageMux to nest another mux. Muxes may be nested 8 levels deep, and must not
	// contain themselves.
	//
	// +optional
	// +kubebuilder:default=StorageBackend
	Kind MemberKind `json:"kind,omitempty"`

	// name of the resource. Unset: the name of the member.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
}

// StickySpec tunes mode sticky-by-key.
type StickySpec struct {
	// hash maps keys to backends. fnv1a-modulo moves most keys when the number of healthy backends changes; rendezvous moves only
	// those of the backend that came or went.
	//
	// +optional
	// +kubebuilder:default="fnv1a-modulo"
	Hash StickyHash `json:"hash,omitempty"`
}

// RetrySpec is how often one store is asked again. Only transient errors are retried, never a timeout, and only by the mux that
// names the StorageBackend: a nested mux is not retried by its parent.
//
// +kubebuilder:validation:XValidation:rule="!has(self.initialInterval) || !has(self.maxInterval) || !self.initialInterval.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.maxInterval.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.initialInterval) <= duration(self.maxInterval)",message="retry.initialInterval must not be longer than retry.maxInterval"
type RetrySpec struct {
	// maxAttempts is how often a store is asked in all for one request, the first time included. 1 means no retry.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`

	// initialInterval is the wait before the second attempt. Each further wait is twice as long, with some jitter. From 1ms.
	//
	// +optional
	// +kubebuilder:default="50ms"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) >= duration('1ms')",message="retry.initialInterval must be at least 1ms"
	InitialInterval Duration `json:"initialInterval,omitempty"`

	// maxInterval is the longest wait between two attempts, at most 1m.
	//
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('1m')",message="retry.maxInterval must be at most 1m"
	MaxInterval Duration `json:"maxInterval,omitempty"`
}

// HealthSpec is how members that failed come back.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cooldown) || !has(self.maxCooldown) || !self.cooldown.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.maxCooldown.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.cooldown) <= duration(self.maxCooldown)",message="health.cooldown must not be longer than health.maxCooldown"
type HealthSpec struct {
	// cooldown is how long a member stays down after its first failure, before one probe decides whether it is up again. It
	// doubles with each further failure in a row, up to 64 times itself and never beyond maxCooldown. From 1ms.
	//
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) >= duration('1ms')",message="health.cooldown must be at least 1ms"
	Cooldown Duration `json:"cooldown,omitempty"`

	// maxCooldown is the longest a member stays down before it is probed again, also when the store itself asked for more with
	// Retry-After. At most 1h.
	//
	// +optional
	// +kubebuilder:default="64s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) <= duration('1h')",message="health.maxCooldown must be at most 1h"
	MaxCooldown Duration `json:"maxCooldown,omitempty"`

	// whenAllDown is what happens to a request while every member is down. Try: one request at a time goes to the member that is
	// due to recover first. Fail: 503 at once.
	//
	// +optional
	// +kubebuilder:default=Try
	WhenAllDown AllDownPolicy `json:"whenAllDown,omitempty"`
}

// FrontendSpec is the S3 endpoint that applications see.
type FrontendSpec struct {
	// bucket is the name under which applications see the objects. Unset: the name of the mux.
	//
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$') && !self.contains('..')",message="frontend.bucket must consist of lower-case letters, digits, '-' and single '.', with a letter or digit at both ends"
	Bucket string `json:"bucket,omitempty"`

	// domains are the names of hosts below which the bucket is a host of its own, for clients that address it in virtual-host
	// style: with s3.example.com, requests to BUCKET.s3.example.com. Requests to any other host are read in path style, but
	// those to BUCKET.localhost.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=189
	// +kubebuilder:validation:XValidation:rule="self.all(d, d.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",message="each of frontend.domains must be a DNS name in lower case, without a port"
	Domains []string `json:"domains,omitempty"`

	// auth says which requests are served.
	//
	// +optional
	// +kubebuilder:default={}
	Auth FrontendAuth `json:"auth,omitzero"`

	// tlsSecretRef names a Secret of type kubernetes.io/tls (tls.crt, tls.key). With it the endpoint is HTTPS on port 443 of the
	// Service; a renewed certificate is taken without a restart. Unset: HTTP on port 80.
	//
	// +optional
	TLSSecretRef *SecretReference `json:"tlsSecretRef,omitempty"`
}

// FrontendAuthType says how clients prove who they are.
//
// +kubebuilder:validation:Enum=SigV4;None
type FrontendAuthType string

const (
	// FrontendAuthSigV4 serves requests that are signed with AWS Signature Version 4 by a known key pair.
	FrontendAuthSigV4 FrontendAuthType = "SigV4"

	// FrontendAuthNone serves everybody who can reach the endpoint. Checksums are still verified.
	FrontendAuthNone FrontendAuthType = "None"
)

// FrontendAuth says which requests are served.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'None' || !has(self.secretRefs) || size(self.secretRefs) == 0",message="frontend.auth.secretRefs must be empty when frontend.auth.type is None"
type FrontendAuth struct {
	// type is SigV4 (requests must be signed by a known key pair) or None (everybody who can reach the endpoint is served).
	//
	// +optional
	// +kubebuilder:default=SigV4
	Type FrontendAuthType `json:"type,omitempty"`

	// secretRefs name the Secrets with the key pairs (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) that clients may sign with, in
	// the same namespace. Up to 4, all valid at once, so that keys can be rotated; the first is the one in the connection Secret.
	// Empty: the operator makes a key pair. Only with type SigV4.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	SecretRefs []SecretReference `json:"secretRefs,omitempty"`
}

// ProxyType says what serves a mux.
//
// +kubebuilder:validation:Enum=Deployment;None
type ProxyType string

const (
	// ProxyTypeDeployment serves the mux from a Deployment of proxies.
	ProxyTypeDeployment ProxyType = "Deployment"

	// ProxyTypeNone serves nothing: the mux exists only to be nested in others.
	ProxyTypeNone ProxyType = "None"
)

// ServiceType is the type of the Service in front of the proxies.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

// The types of the Service, as Kubernetes defines them.
const (
	ServiceTypeClusterIP    ServiceType = "ClusterIP"
	ServiceTypeNodePort     ServiceType = "NodePort"
	ServiceTypeLoadBalancer ServiceType = "LoadBalancer"
)

// ProxySpec is the workload that serves a mux.
//
// +kubebuilder:validation:XValidation:rule="self.?type.orValue('Deployment') != 'None' || !(has(self.resources) || has(self.serviceAnnotations) || has(self.serviceAccountAnnotations) || has(self.podLabels) || has(self.podAnnotations) || has(self.nodeSelector) || has(self.tolerations) || has(self.affinity) || has(self.logLevel) || has(self.accessLog) || self.?profiling.orValue(false) || has(self.env) || self.?serviceType.orValue('ClusterIP') != 'ClusterIP')",message="proxy must not set resources, service, pods, their placement and what they show when proxy.type is None: such a mux has no workload and exists only to be nested"
type ProxySpec struct {
	// type is Deployment, or None for a mux that exists only to be nested in others and has no endpoint of its own. With None,
	// replicas and spool are without meaning, and no other field of proxy may be set.
	//
	// +optional
	// +kubebuilder:default=Deployment
	Type ProxyType `json:"type,omitempty"`

	// replicas is the number of proxies. kubectl scale and autoscalers set it through the scale subresource of the StorageMux.
	// Must be 1 for a mux that holds a memory backend, or a file backend on a ReadWriteOnce claim, at any depth. 0 stops serving.
	// Without meaning when type is None.
	//
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// resources of the proxy container. Unset: requests that fit a small mux, and a memory limit with room for the spool.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="proxy.resources.claims must not be set"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// serviceType of the Service in front of the proxies.
	//
	// +optional
	// +kubebuilder:default=ClusterIP
	ServiceType ServiceType `json:"serviceType,omitempty"`

	// serviceAnnotations are put on the Service, for load balancers and DNS.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="proxy.serviceAnnotations must have keys of the form NAME or DOMAIN/NAME"
	ServiceAnnotations map[string]AnnotationValue `json:"serviceAnnotations,omitempty"`

	// serviceAccountAnnotations are put on the proxies' ServiceAccount, for identities that cloud providers bind to it (auth
	// type Ambient).
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="proxy.serviceAccountAnnotations must have keys of the form NAME or DOMAIN/NAME"
	ServiceAccountAnnotations map[string]AnnotationValue `json:"serviceAccountAnnotations,omitempty"`

	// podLabels are put on the proxies' pods. Keys under app.kubernetes.io/ and storagemux.dev/ are the operator's own.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('app.kubernetes.io/') && !key.startsWith('storagemux.dev/'))",message="proxy.podLabels must not have keys under app.kubernetes.io/ and storagemux.dev/"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="proxy.podLabels must have keys of the form NAME or DOMAIN/NAME"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// podAnnotations are put on the proxies' pods. Keys under storagemux.dev/ are the operator's own.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('storagemux.dev/'))",message="proxy.podAnnotations must not have keys under storagemux.dev/"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="proxy.podAnnotations must have keys of the form NAME or DOMAIN/NAME"
	PodAnnotations map[string]AnnotationValue `json:"podAnnotations,omitempty"`

	// nodeSelector is the labels that a node must have to run a proxy.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="proxy.nodeSelector must have keys of the form NAME or DOMAIN/NAME"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// tolerations of the proxies' pods, at most 32.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the proxies' pods. Unset: they are spread over zones and nodes where that is possible.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// spool is where each proxy keeps request bodies that it may have to send again.
	//
	// +optional
	// +kubebuilder:default={}
	Spool SpoolSpec `json:"spool,omitzero"`

	// logLevel is the least level that the proxies log. Unset: Info. A change of it, as of accessLog, profiling and env, replaces
	// the proxies one by one.
	//
	// +optional
	LogLevel LogLevel `json:"logLevel,omitempty"`

	// accessLog says which requests the proxies log: Errors those answered with 500 and above and those that were cut off, and all
	// others where logLevel is Debug; All every one; Off none. Unset: Errors. Lines hold keys of objects, never credentials.
	//
	// +optional
	AccessLog AccessLog `json:"accessLog,omitempty"`

	// profiling serves Go's profiles under /debug/pprof/ of the proxies' admin port, behind its token.
	//
	// +optional
	Profiling bool `json:"profiling,omitempty"`

	// env is variables of the proxies' environment, at most 32: the standard ones of OpenTelemetry, which say whether and where
	// traces are sent. Values are no place for credentials.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Env []ProxyEnvVar `json:"env,omitempty"`
}

// LogLevel is Debug, Info, Warn or Error.
//
// +kubebuilder:validation:Enum=Debug;Info;Warn;Error
type LogLevel string

// The log levels.
const (
	LogLevelDebug LogLevel = "Debug"
	LogLevelInfo  LogLevel = "Info"
	LogLevelWarn  LogLevel = "Warn"
	LogLevelError LogLevel = "Error"
)

// AccessLog is Errors, All or Off.
//
// +kubebuilder:validation:Enum=Errors;All;Off
type AccessLog string

// The access logs.
const (
	AccessLogErrors AccessLog = "Errors"
	AccessLogAll    AccessLog = "All"
	AccessLogOff    AccessLog = "Off"
)

// ProxyEnvVar is a variable of the proxies' environment.
//
// +kubebuilder:validation:XValidation:rule="self.name.matches('^OTEL_[A-Z0-9_]+$')",message="proxy.env must have names of the form OTEL_NAME, in capital letters, digits and '_'"
// +kubebuilder:validation:XValidation:rule="!self.name.endsWith('_HEADERS')",message="proxy.env must not have the variables OTEL_*_HEADERS, which hold credentials: send to a collector in the cluster that adds them"
// +kubebuilder:validation:XValidation:rule="!self.value.matches('://[^/?#]*@')",message="proxy.env must not have a URL with credentials: send to a collector in the cluster that adds them"
type ProxyEnvVar struct {
	// name of the variable, beginning with OTEL_, such as OTEL_EXPORTER_OTLP_ENDPOINT.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// value of the variable, as it is: $(NAME) stands for nothing else.
	//
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="must consist of letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type LabelValue string

// SpoolSpec is the room in which one proxy keeps bodies of writes until every member has them. Memory is used first, then disk;
// when both are full, a write that has to be sent again is answered with 503.
type SpoolSpec struct {
	// memory that all bodies together may take in one proxy, from 1Mi to 64Gi.
	//
	// +optional
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0)",message="proxy.spool.memory must be between 1Mi and 64Gi"
	Memory *resource.Quantity `json:"memory,omitempty"`

	// disk that all bodies together may take in one proxy, on the ephemeral storage of its pod, from 0 (none) to 16Ti.
	//
	// +optional
	// +kubebuilder:default="2Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('16Ti')) <= 0)",message="proxy.spool.disk must be between 0 and 16Ti"
	Disk *resource.Quantity `json:"disk,omitempty"`
}

// StorageMuxStatus is what is known of a mux and its members. Its figures are sums over the proxies that live now, at most 15
// seconds old under load, and change only while clients send requests.
type StorageMuxStatus struct {
	// observedGeneration is the generation of the spec that this status was made from.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Accepted, ResolvedRefs, Programmed, BackendsHealthy and Ready at all times; Draining, Reconciling and Stalled
	// only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// endpoint is the URL that applications in the cluster send S3 requests to. Empty for a mux of proxy type None.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`

	// bucket is the name under which applications see the objects.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket,omitempty"`

	// connectionSecretName is the Secret for applications to load with envFrom: AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID,
	// AWS_SECRET_ACCESS_KEY, AWS_REGION and BUCKET.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConnectionSecretName string `json:"connectionSecretName,omitempty"`

	// revision is the number of the configuration that the operator last wrote for the proxies. It only rises.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision,omitempty"`

	// replicas is the number of proxies that exist.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// programmedReplicas is the number of proxies that serve the current revision.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ProgrammedReplicas int32 `json:"programmedReplicas"`

	// selector is the label selector of the proxies' pods, for the scale subresource.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Selector string `json:"selector,omitempty"`

	// backendsUp is how many StorageBackends of this mux, counted at every depth, all proxies see up, of how many: 2/3.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16
	BackendsUp string `json:"backendsUp,omitempty"`

	// totals count what this mux did since its proxies started.
	//
	// +optional
	Totals *MuxTotals `json:"totals,omitempty"`

	// capabilities are the weakest over all members, whatever their health.
	//
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// drain is the removal of this mux from the ones that nest it, from its deletion until it is gone.
	//
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`

	// statsTime is when the figures were last taken.
	//
	// +optional
	StatsTime *metav1.Time `json:"statsTime,omitempty"`

	// members are all members at every depth, each under its path.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Members []MemberStatus `json:"members,omitempty"`
}

// MuxTotals count the calls of a mux.
type MuxTotals struct {
	// calls is the number of requests that this mux was given, whatever became of them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Calls int64 `json:"calls"`

	// failovers is how often a request moved on to the next member after a transient error.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failovers int64 `json:"failovers"`

	// fanoutPartials is how many writes some members took and others did not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	FanoutPartials int64 `json:"fanoutPartials"`
}

// MemberStatus is what the proxies of a mux see of one member.
type MemberStatus struct {
	// path of the member: the names of the members from the top down, joined by /, such as primary or mirrors/eu.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// kind of the resource behind the member: StorageBackend or StorageMux.
	//
	// +optional
	Kind MemberKind `json:"kind,omitempty"`

	// name of the resource behind the member.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	Observation `json:",inline"`
}

// StorageMux is one S3 endpoint over several StorageBackends and other StorageMuxes of its namespace. Its mode says which of
// them a request goes to; its status tells the live truth about each.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=smux,categories=storagemux-all,path=storagemuxes
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.proxy.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Up",type=string,JSONPath=`.status.backendsUp`,description="StorageBackends that are up, of all, at every depth"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Programmed",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`
// +kubebuilder:printcolumn:name="Backends",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="BackendsHealthy")].reason`
// +kubebuilder:printcolumn:name="Keyspace",type=string,priority=1,JSONPath=`.spec.keyspace`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 40 characters long, begin with a lower-case letter, end with a letter or digit, and consist of lower-case letters, digits and '-'"
// +kubebuilder:validation:XValidation:rule="self.spec.backends.all(b, !has(b.ref) || b.ref.kind != 'StorageMux' || (has(b.ref.name) ? b.ref.name : b.name) != self.metadata.name)",fieldPath=".spec.backends",message="backends must not contain the StorageMux itself"
type StorageMux struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the endpoint that the user wants.
	//
	// +required
	Spec StorageMuxSpec `json:"spec,omitzero"`

	// status is what is known of the mux.
	//
	// +optional
	Status StorageMuxStatus `json:"status,omitzero"`
}

// StorageMuxList is a list of StorageMuxes.
//
// +kubebuilder:object:root=true
type StorageMuxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []StorageMux `json:"items"`
}

// GetConditions returns the conditions of the status.
func (m *StorageMux) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (m *StorageMux) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// FrontendBucket returns the bucket that applications see: the frontend's, or by default the mux's own name.
func (m *StorageMux) FrontendBucket() string {
	if m.Spec.Frontend.Bucket != "" {
		return m.Spec.Frontend.Bucket
	}
	return m.Name
}
