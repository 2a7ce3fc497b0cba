package v1alpha1

// Condition types. Each is True when all is well, except Draining, Reconciling and Stalled, which are present only while they
// are True.
const (
	// ConditionAccepted: the spec is valid and of a kind that this version can serve. On StorageMux and StorageBackend.
	ConditionAccepted = "Accepted"

	// ConditionResolvedRefs: everything that the spec names exists and can be used. On StorageMux and StorageBackend.
	ConditionResolvedRefs = "ResolvedRefs"

	// ConditionProgrammed: at least one proxy serves the current configuration, and none that is ready lags behind. On StorageMux.
	ConditionProgrammed = "Programmed"

	// ConditionBackendsHealthy: every member at every depth is up in every proxy. On StorageMux.
	ConditionBackendsHealthy = "BackendsHealthy"

	// ConditionReachable: the proxies reach the store and may use it. On StorageBackend.
	ConditionReachable = "Reachable"

	// ConditionReady: requests are served. On a StorageMux: at least one proxy serves an accepted revision. On a StorageBackend:
	// a proxy uses it. A mux of proxy type None, and a StorageBackend that no mux uses, are ready when Accepted and ResolvedRefs.
	ConditionReady = "Ready"

	// ConditionDraining: the object is being deleted and waits until no proxy uses it. On StorageBackend, and on a StorageMux that
	// others nest.
	ConditionDraining = "Draining"

	// ConditionReconciling: the operator is at work towards the current spec. On StorageMux; read by kstatus.
	ConditionReconciling = "Reconciling"

	// ConditionStalled: the operator cannot go on until the user acts. On StorageMux and StorageBackend; read by kstatus.
	ConditionStalled = "Stalled"
)

// Reasons of Accepted. Those for False are the reasons of Stalled too.
const (
	// ReasonAccepted (True): the spec is valid.
	ReasonAccepted = "Accepted"

	// ReasonInvalid: the spec breaks a rule that the schema should have caught; the message names the field.
	ReasonInvalid = "Invalid"

	// ReasonPathNotInCluster: file.path is for storagemux serve; in a cluster file.persistentVolumeClaim must be set.
	ReasonPathNotInCluster = "PathNotInCluster"

	// ReasonInvalidURI: the fallback URI cannot be parsed, or a candidate of it is refused.
	ReasonInvalidURI = "InvalidURI"

	// ReasonCycle: the mux contains itself through others; the message shows the chain.
	ReasonCycle = "Cycle"

	// ReasonTooDeep: muxes are nested more than 8 levels deep; the message shows the chain.
	ReasonTooDeep = "TooDeep"

	// ReasonTooManyMembers: the mux has more than 256 members, nested muxes included.
	ReasonTooManyMembers = "TooManyMembers"

	// ReasonTooLarge: the configuration for the proxies would be larger than 256 KiB.
	ReasonTooLarge = "TooLarge"

	// ReasonSingleReplicaRequired: a memory backend or a ReadWriteOnce claim is a member, and proxy.replicas is not 1.
	ReasonSingleReplicaRequired = "SingleReplicaRequired"
)

// Reasons of ResolvedRefs.
const (
	// ReasonResolvedRefs (True): everything that the spec names exists and can be used.
	ReasonResolvedRefs = "ResolvedRefs"

	// ReasonBackendNotFound: a StorageBackend or StorageMux that a member names does not exist. It is left out while the mode's
	// minimum holds.
	ReasonBackendNotFound = "BackendNotFound"

	// ReasonBackendDeleted: a StorageBackend that a member names is being deleted. It is drained and then left out.
	ReasonBackendDeleted = "BackendDeleted"

	// ReasonBackendNotReady: a member waits for the operator itself: for the finalizer of its StorageBackend, or for the drain of
	// the one that had its name before.
	ReasonBackendNotReady = "BackendNotReady"

	// ReasonMemberNotAccepted: a member is not accepted itself; the message names it.
	ReasonMemberNotAccepted = "MemberNotAccepted"

	// ReasonTooFewBackends: a member is a StorageMux of which fewer members can be used than its mode needs.
	ReasonTooFewBackends = "TooFewBackends"

	// ReasonSecretNotFound: a Secret does not exist. The member keeps the last credentials that it had.
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonInvalidSecret: a Secret lacks keys that it needs or holds values that cannot be used. The member keeps the last
	// credentials that it had.
	ReasonInvalidSecret = "InvalidSecret"

	// ReasonSecretNotPermitted: the operator runs with --require-secret-label and the Secret has no such label.
	ReasonSecretNotPermitted = "SecretNotPermitted"

	// ReasonConfigMapNotFound: a ConfigMap does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"

	// ReasonInvalidConfigMap: a ConfigMap lacks the key that is named, or holds no certificate in PEM form under it.
	ReasonInvalidConfigMap = "InvalidConfigMap"

	// ReasonClaimNotFound: a PersistentVolumeClaim does not exist.
	ReasonClaimNotFound = "ClaimNotFound"
)

// Reasons of Programmed.
const (
	// ReasonProgrammed (True): the proxies serve the current configuration.
	ReasonProgrammed = "Programmed"

	// ReasonPending: proxies have not acknowledged the current configuration yet, or none has started.
	ReasonPending = "Pending"

	// ReasonRejected: a proxy refused the current configuration and serves the one before; the message says why.
	ReasonRejected = "Rejected"

	// ReasonProxyTooOld: a proxy is too old for something that the spec asks for.
	ReasonProxyTooOld = "ProxyTooOld"

	// ReasonScaledToZero: proxy.replicas is 0.
	ReasonScaledToZero = "ScaledToZero"

	// ReasonChildConflict: an object that does not belong to the mux has the name of one that the operator wants to create. It is
	// left alone; the message names it.
	ReasonChildConflict = "ChildConflict"

	// ReasonApplyFailed: the API server refused a child of the mux; the message says why.
	ReasonApplyFailed = "ApplyFailed"
)

// Reasons of Programmed while no proxy serves because of trouble that its pods have. The message names a pod.
const (
	// ReasonImagePullFailed: the node cannot pull the image of the proxy.
	ReasonImagePullFailed = "ImagePullFailed"

	// ReasonProxyCrashing: the proxy ends again and again soon after its start; its log says why.
	ReasonProxyCrashing = "ProxyCrashing"

	// ReasonUnschedulable: no node can take the pod, for want of resources, of a claim, or of a node that its placement allows.
	ReasonUnschedulable = "Unschedulable"

	// ReasonPodNotStarting: the pod is on a node and does not start, mostly because a volume cannot be mounted; the pod's events
	// say why.
	ReasonPodNotStarting = "PodNotStarting"

	// ReasonPodsNotCreated: the API server refuses the pods, for a quota or a policy of the namespace.
	ReasonPodsNotCreated = "PodsNotCreated"
)

// Reasons of Programmed and Ready when another condition is the cause, or when there is nothing to program.
const (
	// ReasonNotAccepted: see the condition Accepted.
	ReasonNotAccepted = "NotAccepted"

	// ReasonRefsNotResolved: see the condition ResolvedRefs.
	ReasonRefsNotResolved = "RefsNotResolved"

	// ReasonNoWorkload (True on Ready and Programmed): a mux of proxy type None has no proxies to program.
	ReasonNoWorkload = "NoWorkload"
)

// Reasons of BackendsHealthy.
const (
	// ReasonAllUp (True): every member is up in every proxy.
	ReasonAllUp = "AllUp"

	// ReasonSomeDown: some members are down or draining; the message names them.
	ReasonSomeDown = "SomeDown"

	// ReasonAllDown: every member is down.
	ReasonAllDown = "AllDown"

	// ReasonNoReport (Unknown; also of Reachable): no proxy has told lately.
	ReasonNoReport = "NoReport"
)

// Reasons of Ready that no other condition has.
const (
	// ReasonServing (True): requests are served.
	ReasonServing = "Serving"

	// ReasonNoProxyServing: no proxy serves an accepted revision.
	ReasonNoProxyServing = "NoProxyServing"
)

// Reasons of Reachable. NotUsed is also the reason of a Ready condition that is True because nothing is asked of the store.
const (
	// ReasonReachable (True): the proxies reach the store and may use it.
	ReasonReachable = "Reachable"

	// ReasonNotUsed (Unknown): no mux uses the StorageBackend.
	ReasonNotUsed = "NotUsed"

	// ReasonUnreachable: the store does not answer, or answers with errors of its own.
	ReasonUnreachable = "Unreachable"

	// ReasonBadCredentials: the store answers and refuses the credentials.
	ReasonBadCredentials = "BadCredentials"

	// ReasonBucketNotFound: the store answers and has no such bucket, container, zone or folder.
	ReasonBucketNotFound = "BucketNotFound"
)

// Reasons of Draining.
const (
	// ReasonDrainInProgress (True): the drain is granted; proxies finish what is under way.
	ReasonDrainInProgress = "InProgress"

	// ReasonDrainBlocked (True): a mux does not grant the drain; the message names it and says what would unblock it.
	ReasonDrainBlocked = "Blocked"
)

// Reasons of Reconciling.
const (
	// ReasonProgressing (True): children are being applied, or proxies are taking up a configuration.
	ReasonProgressing = "Progressing"

	// ReasonPaused (True): the annotation storagemux.dev/paused stops the operator.
	ReasonPaused = "Paused"
)
