package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// nonRoot is the user and group of every container of ours.
const nonRoot = 65532

// A proxy that is told to end stays in service for shutdownDelay, until
// endpoints have spread, and then lets requests run for at most finishTimeout.
// Before that it is left alone for settleSeconds: as the first process of its
// container it would never hear of a signal that came before it listens.
const (
	settleSeconds        = 2
	shutdownDelaySeconds = 5
	finishTimeoutSeconds = 600
	graceSeconds         = settleSeconds + shutdownDelaySeconds + finishTimeoutSeconds + 13
)

// Memory of a proxy apart from its spool and memory backends, in bytes.
const (
	memoryRequest = 64 << 20
	memoryLimit   = 256 << 20
)

func (c childMaker) deployment() runtime.ApplyConfiguration {
	proxy := c.facts.Mux.Spec.Proxy
	strategy := appsv1ac.DeploymentStrategy().WithType(c.strategy())
	if c.strategy() == appsv1.RollingUpdateDeploymentStrategyType {
		strategy.WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
			WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))
	}
	labels := texts(proxy.PodLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.labels())
	return appsv1ac.Deployment(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithAnnotations(c.build()).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(Replicas(c.facts.Mux)).
			WithRevisionHistoryLimit(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(c.facts.Mux.Name))).
			WithStrategy(strategy).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).
				WithAnnotations(texts(proxy.PodAnnotations)).WithAnnotations(c.build()).WithSpec(c.pod())))
}

func (c childMaker) build() map[string]string {
	if c.options.ProxyBuild == "" {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationProxyBuild: c.options.ProxyBuild}
}

// ProxyBuild identifies what an operator with these options makes of a mux's
// proxies apart from what their StorageMux asks for: another image, or other
// arguments in another version of the operator.
func ProxyBuild(o Options) string {
	o.ProxyBuild = ""
	mux := &v1alpha1.StorageMux{}
	mux.Namespace, mux.Name, mux.UID = "namespace", "name", "uid"
	c := childMaker{facts: Facts{Mux: mux}, doc: &muxconfig.Document{}, options: o, name: ChildName(mux.Name)}
	data, err := json.Marshal(c.deployment())
	if err != nil {
		panic(fmt.Sprintf("a Deployment of ours cannot be encoded: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

func (c childMaker) pod() *corev1ac.PodSpecApplyConfiguration {
	proxy := c.facts.Mux.Spec.Proxy
	pod := corev1ac.PodSpec().
		WithServiceAccountName(c.name).
		WithTerminationGracePeriodSeconds(graceSeconds).
		WithSecurityContext(corev1ac.PodSecurityContext().WithRunAsNonRoot(true).
			WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithVolumes(c.volumes()...).
		WithContainers(c.container())
	if len(proxy.NodeSelector) > 0 {
		pod.WithNodeSelector(texts(proxy.NodeSelector))
	}
	for i := range proxy.Tolerations {
		pod.WithTolerations(applied[corev1ac.TolerationApplyConfiguration](proxy.Tolerations[i]))
	}
	if proxy.Affinity != nil {
		pod.Affinity = applied[corev1ac.AffinityApplyConfiguration](proxy.Affinity)
		return pod
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		pod.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().WithMaxSkew(1).
			WithTopologyKey(key).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(c.facts.Mux.Name))))
	}
	return pod
}

func (c childMaker) container() *corev1ac.ContainerApplyConfiguration {
	spoolMemory, spoolDisk := c.spool()
	port := func(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
		return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
	}
	probe := func(path string) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString("health")).WithScheme(corev1.URISchemeHTTP))
	}
	args := []string{
		"proxy",
		"--namespace=" + c.namespace(),
		"--secret-name=" + ConfigSecretName(c.facts.Mux.Name),
		"--mount-path=" + configDir,
		"--state-dir=" + stateDir,
		fmt.Sprintf("--s3-address=:%d", PortS3),
		fmt.Sprintf("--admin-address=:%d", PortAdmin),
		fmt.Sprintf("--health-address=:%d", PortHealth),
		"--spool-dir=" + spoolDir,
		fmt.Sprintf("--spool-memory=%d", spoolMemory),
		fmt.Sprintf("--spool-disk=%d", spoolDisk),
		fmt.Sprintf("--shutdown-delay=%ds", shutdownDelaySeconds),
		fmt.Sprintf("--drain-timeout=%ds", finishTimeoutSeconds),
	}
	return corev1ac.Container().WithName("proxy").WithImage(c.options.ProxyImage).
		WithArgs(append(args, observeArgs(&c.facts.Mux.Spec.Proxy)...)...).
		WithEnv(environ(&c.facts.Mux.Spec.Proxy)...).
		WithPorts(port("s3", PortS3), port("admin", PortAdmin), port("health", PortHealth)).
		WithReadinessProbe(probe("/readyz").WithPeriodSeconds(2).WithTimeoutSeconds(2).WithFailureThreshold(3)).
		WithLivenessProbe(probe("/healthz").WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(6)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(settleSeconds)))).
		WithSecurityContext(corev1ac.SecurityContext().WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithResources(c.resources(spoolMemory)).
		WithVolumeMounts(c.mounts()...)
}

// observeArgs are the arguments for what a proxy shows of its work.
func observeArgs(proxy *v1alpha1.ProxySpec) []string {
	var args []string
	if proxy.LogLevel != "" {
		args = append(args, "--log-level="+strings.ToUpper(string(proxy.LogLevel)))
	}
	if proxy.AccessLog != "" {
		args = append(args, "--access-log="+strings.ToLower(string(proxy.AccessLog)))
	}
	if proxy.Profiling {
		args = append(args, "--pprof")
	}
	return args
}

// environ returns the variables of spec.proxy.env. Kubernetes would put the
// values of other variables in the place of $(NAME); a doubled $ is one $ to it.
func environ(proxy *v1alpha1.ProxySpec) []*corev1ac.EnvVarApplyConfiguration {
	var list []*corev1ac.EnvVarApplyConfiguration
	for _, v := range proxy.Env {
		list = append(list, corev1ac.EnvVar().WithName(v.Name).WithValue(strings.ReplaceAll(v.Value, "$", "$$")))
	}
	return list
}

func (c childMaker) resources(spoolMemory int64) *corev1ac.ResourceRequirementsApplyConfiguration {
	if r := c.facts.Mux.Spec.Proxy.Resources; r != nil {
		out := corev1ac.ResourceRequirements()
		if len(r.Requests) > 0 {
			out.WithRequests(r.Requests)
		}
		if len(r.Limits) > 0 {
			out.WithLimits(r.Limits)
		}
		return out
	}
	stores := c.memoryStores()
	return corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: *resource.NewQuantity(memoryRequest+stores, resource.BinarySI),
		}).
		WithLimits(corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(memoryLimit+spoolMemory+2*stores, resource.BinarySI),
		})
}

// spool returns the room for bodies in memory and on disk, in bytes.
func (c childMaker) spool() (memory, disk int64) {
	memory, disk = 64<<20, 2<<30
	if q := c.facts.Mux.Spec.Proxy.Spool.Memory; q != nil {
		memory = q.Value()
	}
	if q := c.facts.Mux.Spec.Proxy.Spool.Disk; q != nil {
		disk = q.Value()
	}
	return memory, disk
}

func (c childMaker) volumes() []*corev1ac.VolumeApplyConfiguration {
	_, disk := c.spool()
	spool := corev1ac.EmptyDirVolumeSource()
	if disk > 0 {
		// Files that are unlinked but open still count; a little room above
		// the proxy's own limit keeps the kubelet from evicting it.
		spool.WithSizeLimit(*resource.NewQuantity(disk+disk/8+(16<<20), resource.BinarySI))
	} else {
		spool.WithSizeLimit(*resource.NewQuantity(1<<20, resource.BinarySI))
	}
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("config").WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(ConfigSecretName(c.facts.Mux.Name)).WithDefaultMode(0o440)),
		corev1ac.Volume().WithName("state").WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse("4Mi"))),
		corev1ac.Volume().WithName("spool").WithEmptyDir(spool),
	}
	for _, claim := range c.claims() {
		volumes = append(volumes, corev1ac.Volume().WithName(volumeName(claim)).
			WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(claim)))
	}
	return volumes
}

func (c childMaker) mounts() []*corev1ac.VolumeMountApplyConfiguration {
	mounts := []*corev1ac.VolumeMountApplyConfiguration{
		corev1ac.VolumeMount().WithName("config").WithMountPath(configDir).WithReadOnly(true),
		corev1ac.VolumeMount().WithName("state").WithMountPath(stateDir),
		corev1ac.VolumeMount().WithName("spool").WithMountPath(spoolDir),
	}
	for _, claim := range c.claims() {
		mounts = append(mounts, corev1ac.VolumeMount().WithName(volumeName(claim)).WithMountPath(path.Join(claimsDir, claim)))
	}
	return mounts
}

// applied turns a value of the API into its apply configuration, which has the
// same JSON form.
func applied[T any](value any) *T {
	out := new(T)
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		panic(fmt.Sprintf("a %T is not a %T: %v", value, out, err))
	}
	return out
}

func fnv32(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}
