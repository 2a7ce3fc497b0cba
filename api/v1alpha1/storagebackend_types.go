package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackendType names the kind of store behind a StorageBackend, which is the name of the one field of its spec that is set.
//
// +kubebuilder:validation:Enum=s3;http;file;memory;bunny;swift;azure;fallback
type BackendType string

// The types of a StorageBackend.
const (
	BackendTypeS3       BackendType = "s3"
	BackendTypeHTTP     BackendType = "http"
	BackendTypeFile     BackendType = "file"
	BackendTypeMemory   BackendType = "memory"
	BackendTypeBunny    BackendType = "bunny"
	BackendTypeSwift    BackendType = "swift"
	BackendTypeAzure    BackendType = "azure"
	BackendTypeFallback BackendType = "fallback"
)

// StorageBackendSpec describes one store and how to treat it.
//
// The immutability rule compares what says which objects the store holds. How the store is reached (endpoint, region, credentials) may change.
//
// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.http), has(self.file), has(self.memory), has(self.bunny), has(self.swift), has(self.azure), has(self.fallback)].exists_one(set, set)",message="exactly one of s3, http, file, memory, bunny, swift, azure and fallback must be set"
// +kubebuilder:validation:XValidation:rule=`has(self.s3) == has(oldSelf.s3) && has(self.http) == has(oldSelf.http) && has(self.file) == has(oldSelf.file) && has(self.memory) == has(oldSelf.memory) && has(self.bunny) == has(oldSelf.bunny) && has(self.swift) == has(oldSelf.swift) && has(self.azure) == has(oldSelf.azure) && has(self.fallback) == has(oldSelf.fallback) && (!has(self.s3) || (self.s3.bucket == oldSelf.s3.bucket && (has(self.s3.prefix) ? self.s3.prefix : "") == (has(oldSelf.s3.prefix) ? oldSelf.s3.prefix : ""))) && (!has(self.http) || self.http.url == oldSelf.http.url) && (!has(self.file) || ((has(self.file.path) ? self.file.path : "") == (has(oldSelf.file.path) ? oldSelf.file.path : "") && has(self.file.persistentVolumeClaim) == has(oldSelf.file.persistentVolumeClaim) && (!has(self.file.persistentVolumeClaim) || (self.file.persistentVolumeClaim.claimName == oldSelf.file.persistentVolumeClaim.claimName && (has(self.file.persistentVolumeClaim.subPath) ? self.file.persistentVolumeClaim.subPath : "") == (has(oldSelf.file.persistentVolumeClaim.subPath) ? oldSelf.file.persistentVolumeClaim.subPath : ""))))) && (!has(self.bunny) || self.bunny.zone == oldSelf.bunny.zone) && (!has(self.swift) || (self.swift.container == oldSelf.swift.container && (has(self.swift.prefix) ? self.swift.prefix : "") == (has(oldSelf.swift.prefix) ? oldSelf.swift.prefix : ""))) && (!has(self.azure) || (self.azure.container == oldSelf.azure.container && (has(self.azure.prefix) ? self.azure.prefix : "") == (has(oldSelf.azure.prefix) ? oldSelf.azure.prefix : "")))`,message="type, bucket (zone, container), prefix, url and claim must not change: add a new StorageBackend, list it in the mux, and delete this one, which drains it first"
type StorageBackendSpec struct {
	// s3 is a bucket behind the S3 API, of AWS or of any other server.
	//
	// +optional
	S3 *S3Backend `json:"s3,omitempty"`

	// http is a WebDAV server, or a plain web server to read from.
	//
	// +optional
	HTTP *HTTPBackend `json:"http,omitempty"`

	// file is a folder: in a cluster, one on a persistent volume that the proxies mount.
	//
	// +optional
	File *FileBackend `json:"file,omitempty"`

	// memory keeps objects in the memory of the one proxy, and loses them with it: for tests and caches. A mux that holds it at
	// any depth must have proxy.replicas 1.
	//
	// +optional
	Memory *MemoryBackend `json:"memory,omitempty"`

	// bunny is a storage zone of bunny.net.
	//
	// +optional
	Bunny *BunnyBackend `json:"bunny,omitempty"`

	// swift is a container of OpenStack Swift, which Rackspace Cloud Files speaks too.
	//
	// +optional
	Swift *SwiftBackend `json:"swift,omitempty"`

	// azure is a container of Azure Blob Storage.
	//
	// +optional
	Azure *AzureBackend `json:"azure,omitempty"`

	// fallback is a ladder of places under one fallback:// URI, tried one after another.
	//
	// +optional
	Fallback *FallbackBackend `json:"fallback,omitempty"`

	// timeout is how long the store may take to send the first byte of an answer, counted from the last byte of the request, and
	// how long it may stall at any later time while data is due from or to it. It never limits a whole transfer. When it passes,
	// the attempt fails with STORAGE_MUX.BACKEND_TIMEOUT. From 1ms to 1h. Unset: the backendTimeout of each mux that uses it.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || (duration(self) >= duration('1ms') && duration(self) <= duration('1h'))",message="timeout must be between 1ms and 1h"
	Timeout Duration `json:"timeout,omitempty"`

	// maxInFlight is how many requests each proxy keeps open to the store at the same time, bodies that are still being read
	// included. At the limit, reads choose another member; writes wait up to a second for a place and are then answered with 503
	// SlowDown. Being full never counts as a failure of the store.
	//
	// +optional
	// +kubebuilder:default=512
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`

	// healthCheck makes every proxy check the store at an interval, also when no client asks for anything. Unset: the outcome of
	// the clients' own requests decides (passive health), with one probe after each cooldown.
	//
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`

	// drainTimeout is how long requests and uploads that are under way may go on after the deletion of this StorageBackend was
	// granted. What is left then is cancelled with STORAGE_MUX.BACKEND_DRAINING, and the event DrainForced names the pods that
	// had to be removed. From 1s to 24h.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || (duration(self) >= duration('1s') && duration(self) <= duration('24h'))",message="drainTimeout must be between 1s and 24h"
	DrainTimeout Duration `json:"drainTimeout,omitempty"`
}

// Type returns the type of the store, and the empty string when none or several are set, which the schema refuses.
func (s *StorageBackendSpec) Type() BackendType {
	var found BackendType
	for _, candidate := range []struct {
		name BackendType
		set  bool
	}{
		{BackendTypeS3, s.S3 != nil},
		{BackendTypeHTTP, s.HTTP != nil},
		{BackendTypeFile, s.File != nil},
		{BackendTypeMemory, s.Memory != nil},
		{BackendTypeBunny, s.Bunny != nil},
		{BackendTypeSwift, s.Swift != nil},
		{BackendTypeAzure, s.Azure != nil},
		{BackendTypeFallback, s.Fallback != nil},
	} {
		if !candidate.set {
			continue
		}
		if found != "" {
			return ""
		}
		found = candidate.name
	}
	return found
}

// AddressingStyle says where in a request's address the bucket stands.
//
// +kubebuilder:validation:Enum=Auto;Path;VirtualHosted
type AddressingStyle string

const (
	// AddressingStyleAuto takes VirtualHosted for AWS and the stores known to need it, and Path for all others.
	AddressingStyleAuto AddressingStyle = "Auto"

	// AddressingStylePath puts the bucket into the path: https://host/bucket/key.
	AddressingStylePath AddressingStyle = "Path"

	// AddressingStyleVirtualHosted puts the bucket into the host name: https://bucket.host/key.
	AddressingStyleVirtualHosted AddressingStyle = "VirtualHosted"
)

// S3Backend is a bucket behind the S3 API.
//
// +kubebuilder:validation:XValidation:rule="has(self.endpoint) || has(self.region)",message="region must be set when endpoint is not: without an endpoint the bucket is looked for on AWS, in that region"
type S3Backend struct {
	// endpoint is the address of the S3 server, such as https://s3.example.com or http://store.team-a.svc:9000, without path.
	// Unset: AWS itself, in the given region.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != "" && url(self).getEscapedPath() in ["", '/'] && !self.contains('?') && !self.contains('#') && !self.matches('^[^/]*//[^/]*@')`,message="endpoint must be a URL of the form https://host or http://host:port, without path, query and credentials"
	Endpoint string `json:"endpoint,omitempty"`

	// region that requests are signed for. Required without endpoint. Unset with an endpoint: us-east-1, which nearly every
	// server other than AWS expects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="region must consist of letters, digits, '-' and '_'"
	Region string `json:"region,omitempty"`

	// bucket that holds the objects. It must exist. Immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9._:-]*$')",message="bucket must begin with a letter or digit and consist of letters, digits, '.', '_', ':' and '-'"
	Bucket string `json:"bucket"`

	// prefix is put before every key, exactly as written: end it with a / to keep objects in a folder. Two backends may share a
	// bucket under different prefixes. Immutable.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`

	// addressingStyle says where the bucket's name goes: Path (https://host/bucket/key), VirtualHosted
	// (https://bucket.host/key), or Auto, which takes VirtualHosted for AWS and Path for servers that are not known to need the
	// other.
	//
	// +optional
	// +kubebuilder:default=Auto
	AddressingStyle AddressingStyle `json:"addressingStyle,omitempty"`

	// auth says with which credentials the bucket is used. With type Secret, the Secret holds AWS_ACCESS_KEY_ID,
	// AWS_SECRET_ACCESS_KEY and, for temporary credentials, AWS_SESSION_TOKEN.
	//
	// +required
	Auth BackendAuth `json:"auth,omitzero"`

	// caBundleRef names the certificates to trust for this endpoint, in place of those of the system.
	//
	// +optional
	CABundleRef *CABundleReference `json:"caBundleRef,omitempty"`
}

// HTTPFlavor says what an HTTP server can do.
//
// +kubebuilder:validation:Enum=WebDAV;Plain
type HTTPFlavor string

const (
	// HTTPFlavorWebDAV is a server that lists, stores, moves and deletes.
	HTTPFlavorWebDAV HTTPFlavor = "WebDAV"

	// HTTPFlavorPlain is a server that is only read from.
	HTTPFlavorPlain HTTPFlavor = "Plain"
)

// HTTPBackend is a folder of a WebDAV or web server.
type HTTPBackend struct {
	// url of the folder under which the keys live, such as https://dav.example.com/assets/. A missing / at the end is added.
	// Immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != "" && !self.contains('?') && !self.contains('#') && !self.matches('^[^/]*//[^/]*@')`,message="url must begin with http:// or https://, name a host, and have no query, fragment and credentials"
	URL string `json:"url"`

	// flavor of the server: WebDAV, or Plain, which is read-only and cannot be listed.
	//
	// +optional
	// +kubebuilder:default=WebDAV
	Flavor HTTPFlavor `json:"flavor,omitempty"`

	// auth says with which credentials the server is called: Secret or Anonymous. The Secret holds username and password, or
	// token (sent as a bearer token), or any number of header.NAME, each sent as the header NAME.
	//
	// +optional
	// +kubebuilder:default={type: Anonymous}
	// +kubebuilder:validation:XValidation:rule="self.type != 'Ambient'",message="auth.type of http must be Secret or Anonymous"
	Auth BackendAuth `json:"auth,omitzero"`

	// caBundleRef names the certificates to trust for this server, in place of those of the system.
	//
	// +optional
	CABundleRef *CABundleReference `json:"caBundleRef,omitempty"`
}

// FileBackend is a folder.
//
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) != has(self.path)",message="exactly one of persistentVolumeClaim and path must be set: persistentVolumeClaim in a cluster, path for storagemux serve"
type FileBackend struct {
	// persistentVolumeClaim names the claim that proxies mount, in the same namespace. Immutable.
	//
	// +optional
	PersistentVolumeClaim *FileVolumeClaim `json:"persistentVolumeClaim,omitempty"`

	// path of a folder on this machine, relative to the manifest that it stands in. Only for storagemux serve: in a cluster it is
	// Accepted=False. Immutable.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
}

// FileVolumeClaim is a folder on a persistent volume.
type FileVolumeClaim struct {
	// claimName is the name of the PersistentVolumeClaim. A claim that only one node can mount (ReadWriteOnce) needs
	// proxy.replicas 1 in every mux that holds this backend at any depth.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// subPath is the folder inside the volume. Proxies make it when it is missing. Unset: the volume's root.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !('..' in self.split('/'))",message="subPath must be relative and must not contain '..'"
	SubPath string `json:"subPath,omitempty"`
}

// MemoryBackend keeps objects in the memory of the proxy.
type MemoryBackend struct {
	// sizeLimit is how many bytes of objects are kept, from 1Mi to 64Gi. A write beyond it fails with STORAGE.NO_SPACE. It must
	// fit into the proxy's memory limit.
	//
	// +optional
	// +kubebuilder:default="64Mi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0)",message="sizeLimit must be between 1Mi and 64Gi"
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// BunnyBackend is a storage zone of bunny.net.
type BunnyBackend struct {
	// zone is the name of the storage zone. Immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="zone must consist of letters, digits and '-'"
	Zone string `json:"zone"`

	// region is the code of the zone's main region, such as uk, ny or sg, which is the first part of its host name. Unset: the
	// default region, Falkenstein, whose host name has no such part.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+$')",message="region must consist of lower-case letters and digits"
	Region string `json:"region,omitempty"`

	// endpoint is the address of the storage API in place of the one that region gives, such as https://storage.example.com,
	// without path: for a gateway of your own in between.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != "" && url(self).getEscapedPath() in ["", '/'] && !self.contains('?') && !self.contains('#') && !self.matches('^[^/]*//[^/]*@')`,message="endpoint must be a URL of the form https://host or http://host:port, without path, query and credentials"
	Endpoint string `json:"endpoint,omitempty"`

	// auth names the credentials of the zone; its type is Secret. The Secret holds accessKey, the zone's password.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.type == 'Secret'",message="auth.type of bunny must be Secret"
	Auth BackendAuth `json:"auth,omitzero"`
}

// SwiftBackend is a container of OpenStack Swift.
type SwiftBackend struct {
	// authURL is the address of the identity service, with its version: https://keystone.example.com/v3.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != "" && !self.contains('?') && !self.contains('#') && !self.matches('^[^/]*//[^/]*@')`,message="authURL must begin with http:// or https://, name a host, and have no query, fragment and credentials"
	AuthURL string `json:"authURL"`

	// container that holds the objects. It must exist. Immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.contains('/')",message="container must not contain '/'"
	Container string `json:"container"`

	// prefix is put before every key, exactly as written: end it with a / to keep objects in a folder. Immutable.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`

	// auth names the credentials; its type is Secret. The Secret holds OS_USERNAME and OS_PASSWORD, and, where the identity
	// service needs them, OS_PROJECT_NAME, OS_USER_DOMAIN_NAME, OS_PROJECT_DOMAIN_NAME and OS_REGION_NAME.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.type == 'Secret'",message="auth.type of swift must be Secret"
	Auth BackendAuth `json:"auth,omitzero"`

	// caBundleRef names the certificates to trust for the identity service and the store, in place of those of the system.
	//
	// +optional
	CABundleRef *CABundleReference `json:"caBundleRef,omitempty"`
}

// AzureBackend is a container of Azure Blob Storage.
type AzureBackend struct {
	// endpoint is the address of the storage account's blob service, such as https://account.blob.core.windows.net.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != "" && !self.contains('?') && !self.contains('#') && !self.matches('^[^/]*//[^/]*@')`,message="endpoint must begin with http:// or https://, name a host, and have no query, fragment and credentials"
	Endpoint string `json:"endpoint"`

	// container that holds the objects. It must exist. Immutable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9$][a-z0-9-]*$')",message="container must consist of lower-case letters, digits and '-'"
	Container string `json:"container"`

	// prefix is put before every key, exactly as written: end it with a / to keep objects in a folder. Immutable.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`

	// auth says with which credentials the container is used: Secret, Ambient (a workload identity) or Anonymous (a public
	// container). The Secret holds AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN.
	//
	// +required
	Auth BackendAuth `json:"auth,omitzero"`
}

// FallbackBackend is a ladder of places to look in.
type FallbackBackend struct {
	// uri is a fallback:// URI: fallback://?u=FIRST&u=SECOND, with each candidate percent-encoded. Every candidate is a base
	// under which the keys live, of the scheme https, http, backend://NAME/PREFIX, mux://NAME/PREFIX (resources of this
	// namespace), s3://BUCKET/PREFIX (through the one StorageBackend of this namespace with that bucket) or fallback. Each
	// candidate has at most 4096 characters. storagemux uri build writes such a URI.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.startsWith('fallback://')",message="uri must begin with fallback://"
	URI string `json:"uri"`

	// policy says how the candidates are walked.
	//
	// +optional
	// +kubebuilder:default={}
	Policy FallbackPolicy `json:"policy,omitzero"`
}

// FallbackWalk says how a read visits the candidates of a fallback URI.
//
// +kubebuilder:validation:Enum=sequential;parallel
type FallbackWalk string

// The ways to visit candidates: in order until one succeeds, or all at once with the first success winning.
const (
	FallbackWalkSequential FallbackWalk = "sequential"
	FallbackWalkParallel   FallbackWalk = "parallel"
)

// FallbackErrorClass says which errors of a candidate lead on to the next.
//
// +kubebuilder:validation:Enum=transient;any
type FallbackErrorClass string

// The error classes that lead on: transient ones only, or any.
const (
	FallbackErrorClassTransient FallbackErrorClass = "transient"
	FallbackErrorClassAny       FallbackErrorClass = "any"
)

// FallbackWriteMode says to which candidates a write goes.
//
// +kubebuilder:validation:Enum=all;first-success
type FallbackWriteMode string

// The write modes: to every candidate, failing if one fails, or in order until one succeeds.
const (
	FallbackWriteModeAll          FallbackWriteMode = "all"
	FallbackWriteModeFirstSuccess FallbackWriteMode = "first-success"
)

// FallbackDeleteMode says when a delete has succeeded.
//
// +kubebuilder:validation:Enum=any;all
type FallbackDeleteMode string

// The delete modes: at least one candidate deleted the object, or all of them did.
const (
	FallbackDeleteModeAny FallbackDeleteMode = "any"
	FallbackDeleteModeAll FallbackDeleteMode = "all"
)

// FallbackListMode says how the lists of the candidates become one.
//
// +kubebuilder:validation:Enum=union;concat
type FallbackListMode string

// The list modes: every key once, or the lists one after another as they are.
const (
	FallbackListModeUnion  FallbackListMode = "union"
	FallbackListModeConcat FallbackListMode = "concat"
)

// FallbackListFailureMode says what happens when a candidate cannot be listed.
//
// +kubebuilder:validation:Enum=throw;partial
type FallbackListFailureMode string

// The list failure modes: the list fails, or it lacks that candidate's keys.
const (
	FallbackListFailureModeThrow   FallbackListFailureMode = "throw"
	FallbackListFailureModePartial FallbackListFailureMode = "partial"
)

// FallbackPolicy says how the candidates of a fallback URI are walked.
type FallbackPolicy struct {
	// walk is how reads visit the candidates: sequential (in order until one succeeds) or parallel (all at once, the first
	// success wins).
	//
	// +optional
	// +kubebuilder:default=sequential
	Walk FallbackWalk `json:"walk,omitempty"`

	// errorClass is which errors lead on to the next candidate: transient, or any.
	//
	// +optional
	// +kubebuilder:default=transient
	ErrorClass FallbackErrorClass `json:"errorClass,omitempty"`

	// notFoundFallsThrough says whether a key that a candidate does not hold is looked for in the next one.
	//
	// +optional
	// +kubebuilder:default=true
	NotFoundFallsThrough *bool `json:"notFoundFallsThrough,omitempty"`

	// stopOnAbort says whether a candidate that gives up by itself ends the walk, or leads on to the next one. A client that
	// leaves always ends the walk; a time limit of StorageMux, such as timeout of a backend, never does: it leads on.
	//
	// +optional
	// +kubebuilder:default=true
	StopOnAbort *bool `json:"stopOnAbort,omitempty"`

	// writeMode is where writes go: all (to every candidate; one failure fails the write) or first-success (in order until one
	// accepts).
	//
	// +optional
	// +kubebuilder:default=all
	WriteMode FallbackWriteMode `json:"writeMode,omitempty"`

	// deleteMode is when a delete has succeeded: any (at least one candidate deleted the object) or all.
	//
	// +optional
	// +kubebuilder:default=any
	DeleteMode FallbackDeleteMode `json:"deleteMode,omitempty"`

	// listMode is how lists are put together: union (every key once) or concat (one after another, a key perhaps several
	// times).
	//
	// +optional
	// +kubebuilder:default=union
	ListMode FallbackListMode `json:"listMode,omitempty"`

	// listFailureMode is what happens when a candidate cannot be listed: throw (the list fails) or partial (its keys are
	// missing).
	//
	// +optional
	// +kubebuilder:default=throw
	ListFailureMode FallbackListFailureMode `json:"listFailureMode,omitempty"`

	// maxCandidates is how many candidates one URI may have. More are refused.
	//
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	MaxCandidates *int32 `json:"maxCandidates,omitempty"`

	// maxDepth is how deep fallback URIs may be nested in each other. Deeper ones fail with FALLBACK_URI.MAX_DEPTH_EXCEEDED.
	//
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	MaxDepth *int32 `json:"maxDepth,omitempty"`

	// allowedHosts are the hosts that http and https candidates and their redirects may name: a host, or *.DOMAIN for every host
	// below a domain. Unset: the hosts of the candidates themselves, and redirects to no other.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AllowedHosts []string `json:"allowedHosts,omitempty"`

	// allowPrivateAddresses lets http and https candidates reach private and link-local addresses, such as those of the cluster
	// itself. It is checked on the address that is dialled.
	//
	// +optional
	// +kubebuilder:default=false
	AllowPrivateAddresses *bool `json:"allowPrivateAddresses,omitempty"`
}

// HealthCheck is an active check of a store.
//
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || !has(self.timeout) || !self.interval.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.timeout.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.timeout) <= duration(self.interval)",message="healthCheck.timeout must not be longer than healthCheck.interval"
type HealthCheck struct {
	// interval is the time between two checks of one proxy, from 1s to 1h. A check that fails, whatever the reason, takes the
	// store down with STORAGE_MUX.HEALTHCHECK_FAILED, and then only a check that passes brings it back.
	//
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || (duration(self) >= duration('1s') && duration(self) <= duration('1h'))",message="healthCheck.interval must be between 1s and 1h"
	Interval Duration `json:"interval,omitempty"`

	// timeout is how long one check may take before it has failed, from 1ms to the interval.
	//
	// +optional
	// +kubebuilder:default="2s"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self) >= duration('1ms')",message="healthCheck.timeout must be at least 1ms"
	Timeout Duration `json:"timeout,omitempty"`
}

// StorageBackendStatus is what the proxies of all muxes together see of a store.
type StorageBackendStatus struct {
	// observedGeneration is the generation of the spec that this status was made from.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Accepted, ResolvedRefs, Reachable and Ready at all times; Draining and Stalled only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// type of the store: the name of the field of the spec that is set.
	//
	// +optional
	Type BackendType `json:"type,omitempty"`

	// usedBy names the StorageMuxes that contain this store at any depth, by name, at most 32 of them.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	UsedBy []MuxReference `json:"usedBy,omitempty"`

	// usedByCount is how many StorageMuxes contain this store at any depth, those that usedBy has no room for included.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UsedByCount int32 `json:"usedByCount"`

	// drain is the removal of this store from the muxes that use it, from its deletion until it is gone.
	//
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`

	// capabilities of the store, once a proxy has reported them.
	//
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// statsTime is when the figures were last taken.
	//
	// +optional
	StatsTime *metav1.Time `json:"statsTime,omitempty"`

	Observation `json:",inline"`
}

// StorageBackend is one place that holds objects: a bucket, a WebDAV folder, a volume, or the memory of a proxy. It serves
// nothing by itself; a StorageMux of the same namespace composes it with others. Deleting it drains it first.
//
// Who may create a StorageBackend may use any Secret of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sback,categories=storagemux-all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="up, down, draining or unknown, over all proxies that use it"
// +kubebuilder:printcolumn:name="Used By",type=integer,JSONPath=`.status.usedByCount`,description="how many StorageMuxes contain it"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Reachable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Reachable")].reason`
// +kubebuilder:printcolumn:name="Draining",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Draining")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 63 characters long and consist of lower-case letters, digits and '-', with a letter or digit at both ends"
type StorageBackend struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the store that the user wants to use.
	//
	// +required
	Spec StorageBackendSpec `json:"spec,omitzero"`

	// status is what is known of the store.
	//
	// +optional
	Status StorageBackendStatus `json:"status,omitzero"`
}

// StorageBackendList is a list of StorageBackends.
//
// +kubebuilder:object:root=true
type StorageBackendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []StorageBackend `json:"items"`
}

// GetConditions returns the conditions of the status.
func (b *StorageBackend) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (b *StorageBackend) SetConditions(conditions []metav1.Condition) {
	b.Status.Conditions = conditions
}
