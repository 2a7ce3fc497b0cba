package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of what a status holds. A writer cuts what is longer, so that the API server never refuses a status.
const (
	MaxStatusMembers      = 256
	MaxStatusUsedBy       = 32
	MaxStatusWaitingFor   = 32
	MaxErrorMessageLength = 512
)

// MemberState is how proxies treat a member.
//
// +kubebuilder:validation:Enum=up;down;draining;unknown
type MemberState string

const (
	// MemberStateUp: requests go to the member.
	MemberStateUp MemberState = "up"

	// MemberStateDown: the member failed and waits for a probe or a check.
	MemberStateDown MemberState = "down"

	// MemberStateDraining: the member takes no new requests, or in keyspace spread no new objects, and is about to be removed.
	MemberStateDraining MemberState = "draining"

	// MemberStateUnknown: no proxy has told lately.
	MemberStateUnknown MemberState = "unknown"
)

// Observation is what proxies report of a member, put together over all of them.
type Observation struct {
	// state of the member: up, down, draining or unknown. When proxies disagree it is the worst that any of them reports, in the
	// order draining, down, up; unknown when none reports.
	//
	// +optional
	State MemberState `json:"state,omitempty"`

	// replicas counts the proxies by the state in which each sees the member.
	//
	// +optional
	Replicas StateCounts `json:"replicas,omitzero"`

	// hits is the number of attempts that succeeded.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Hits int64 `json:"hits"`

	// misses is the number of attempts that the member answered with not-found.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Misses int64 `json:"misses"`

	// errors is the number of attempts that failed in any other way, timeouts included and aborts not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`

	// timeouts is the number of attempts that passed the member's timeout. They are counted in errors too.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Timeouts int64 `json:"timeouts"`

	// aborts is the number of attempts that the client ended.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Aborts int64 `json:"aborts"`

	// inFlight is the number of attempts under way, those whose body is still being read included.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	InFlight int64 `json:"inFlight"`

	// latencyMicroseconds is the time to the first byte, as the slowest proxy saw it.
	//
	// +optional
	LatencyMicroseconds LatencyStatus `json:"latencyMicroseconds,omitzero"`

	// consecutiveFailures is the number of failures in a row, the largest that any proxy has seen.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveFailures int64 `json:"consecutiveFailures"`

	// lastTransitionTime is when the state last changed in any proxy.
	//
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// lastError is the latest error that counted as a failure of the member. It stays after the member has recovered.
	//
	// +optional
	LastError *ErrorStatus `json:"lastError,omitempty"`
}

// StateCounts counts proxies by the state in which they see a member.
type StateCounts struct {
	// up counts the proxies that send requests to the member.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Up int32 `json:"up"`

	// down counts the proxies for which the member has failed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Down int32 `json:"down"`

	// draining counts the proxies that are letting go of the member.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Draining int32 `json:"draining"`

	// unknown counts the proxies that exist and have not told lately.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int32 `json:"unknown"`
}

// LatencyStatus holds latencies in microseconds. Each figure is the largest that any proxy reports, not a percentile over all
// requests: percentiles of several proxies cannot be added up.
type LatencyStatus struct {
	// last is the latency of the latest attempt.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Last int64 `json:"last"`

	// p50 is the median over a sample of 256 attempts in each proxy.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	P50 int64 `json:"p50"`

	// p99 is the 99th percentile over a sample of 256 attempts in each proxy.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	P99 int64 `json:"p99"`
}

// ErrorStatus is an error of a store, without credentials and without keys.
type ErrorStatus struct {
	// code of the error, such as STORAGE_MUX.BACKEND_TIMEOUT or STORAGE.CREDENTIAL_EXPIRED.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`

	// message of the error, cut at 512 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Identity says how far a store's ETag identifies the bytes of an object.
//
// +kubebuilder:validation:Enum=native;stored;weak
type Identity string

const (
	// IdentityNative: the store's own ETag changes with every change of the object and can be sent back as a condition.
	IdentityNative Identity = "native"

	// IdentityStored: an identity is kept with the object as metadata.
	IdentityStored Identity = "stored"

	// IdentityWeak: only size and modification time tell versions apart.
	IdentityWeak Identity = "weak"
)

// Capabilities are what a store can do.
type Capabilities struct {
	// range: a part of an object can be read.
	//
	// +optional
	Range bool `json:"range"`

	// partialWrite: a part of an object can be overwritten.
	//
	// +optional
	PartialWrite bool `json:"partialWrite"`

	// metadata: user metadata and the content type are kept.
	//
	// +optional
	Metadata bool `json:"metadata"`

	// conditionalWrite: a write can depend on what is stored.
	//
	// +optional
	ConditionalWrite bool `json:"conditionalWrite"`

	// nativeMultipart: the store itself puts objects together from parts.
	//
	// +optional
	NativeMultipart bool `json:"nativeMultipart"`

	// orderedList: lists come in byte order of the keys.
	//
	// +optional
	OrderedList bool `json:"orderedList"`

	// tagging: tags of objects are kept.
	//
	// +optional
	Tagging bool `json:"tagging"`

	// identity says how far an object's ETag identifies its bytes: native, stored or weak.
	//
	// +optional
	Identity Identity `json:"identity,omitempty"`
}

// MuxReference names a StorageMux of the same namespace.
type MuxReference struct {
	// name of the StorageMux.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DrainStatus is the removal of an object from the muxes that use it.
type DrainStatus struct {
	// startedAt is when the first mux granted the drain. Unset while it is Blocked everywhere.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// deadline is when requests that are still under way are cancelled.
	//
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// waitingFor names the muxes that have not granted the drain and the pods that have not acknowledged it, as
	// storagemux/NAME and pod/NAME, at most 32 of them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=320
	WaitingFor []string `json:"waitingFor,omitempty"`
}
