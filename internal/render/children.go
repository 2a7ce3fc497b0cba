package render

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Options are what the operator, not a resource, decides about children.
type Options struct {
	// ProxyImage is the image of every proxy.
	ProxyImage string
	// OperatorNamespace is where the callers of the admin port live.
	OperatorNamespace string
	// ProxyBuild is what ProxyBuild returns for the rest.
	ProxyBuild string
}

// Child is one object that a mux owns.
type Child struct {
	Kind, Name string
	// Apply is the typed apply configuration.
	Apply runtime.ApplyConfiguration
}

// Children returns the objects that serve doc, in the order in which they are
// to be applied; the config Secret is not among them. A mux of proxy type None
// has none.
func Children(f Facts, doc *muxconfig.Document, o Options) []Child {
	if f.Mux.Spec.Proxy.Type == v1alpha1.ProxyTypeNone {
		return nil
	}
	c := childMaker{facts: f, doc: doc, options: o, name: ChildName(f.Mux.Name)}
	return []Child{
		{"ServiceAccount", c.name, c.serviceAccount()},
		{"Role", c.name, c.role()},
		{"RoleBinding", c.name, c.roleBinding()},
		{"Service", c.name, c.service()},
		{"Secret", ConnectionSecretName(f.Mux.Name), c.connectionSecret()},
		{"NetworkPolicy", c.name, c.networkPolicy()},
		{"PodDisruptionBudget", c.name, c.disruptionBudget()},
		{"Deployment", c.name, c.deployment()},
	}
}

type childMaker struct {
	facts   Facts
	doc     *muxconfig.Document
	options Options
	name    string
}

func (c childMaker) namespace() string         { return c.facts.Mux.Namespace }
func (c childMaker) labels() map[string]string { return ChildLabels(c.facts.Mux.Name) }

func (c childMaker) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return OwnerReference(c.facts.Mux)
}

// OwnerReference makes mux the controlling owner of a child.
func OwnerReference(mux *v1alpha1.StorageMux) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind(v1alpha1.KindStorageMux).
		WithName(mux.Name).WithUID(mux.UID).WithController(true).WithBlockOwnerDeletion(true)
}

func (c childMaker) serviceAccount() runtime.ApplyConfiguration {
	return corev1ac.ServiceAccount(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithAnnotations(texts(c.facts.Mux.Spec.Proxy.ServiceAccountAnnotations))
}

// role lets a proxy read its own document and nothing else.
func (c childMaker) role() runtime.ApplyConfiguration {
	return rbacv1ac.Role(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").
			WithResourceNames(ConfigSecretName(c.facts.Mux.Name)).WithVerbs("get", "list", "watch"))
}

func (c childMaker) roleBinding() runtime.ApplyConfiguration {
	return rbacv1ac.RoleBinding(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(c.name)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(c.name).WithNamespace(c.namespace()))
}

func (c childMaker) service() runtime.ApplyConfiguration {
	proxy := c.facts.Mux.Spec.Proxy
	port := int32(80)
	if c.facts.Mux.Spec.Frontend.TLSSecretRef != nil {
		port = 443
	}
	kind := corev1.ServiceType(proxy.ServiceType)
	if kind == "" {
		kind = corev1.ServiceTypeClusterIP
	}
	return corev1ac.Service(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithAnnotations(texts(proxy.ServiceAnnotations)).
		WithSpec(corev1ac.ServiceSpec().WithType(kind).WithSelector(SelectorLabels(c.facts.Mux.Name)).
			WithPorts(corev1ac.ServicePort().WithName("s3").WithProtocol(corev1.ProtocolTCP).
				WithPort(port).WithTargetPort(intstr.FromString("s3"))))
}

// connectionSecret holds what an application needs to use the mux, under the
// names that the AWS SDKs read.
func (c childMaker) connectionSecret() runtime.ApplyConfiguration {
	data := map[string][]byte{
		v1alpha1.ConnectionKeyEndpoint: []byte(Endpoint(c.facts.Mux)),
		v1alpha1.ConnectionKeyRegion:   []byte(Region),
		v1alpha1.ConnectionKeyBucket:   []byte(c.doc.Frontend.Bucket),
	}
	if pairs := c.doc.Frontend.KeyPairs; len(pairs) > 0 {
		data[v1alpha1.SecretKeyAWSAccessKeyID] = []byte(pairs[0].AccessKeyID)
		data[v1alpha1.SecretKeyAWSSecretAccessKey] = []byte(pairs[0].SecretAccessKey.Reveal())
	}
	return corev1ac.Secret(ConnectionSecretName(c.facts.Mux.Name), c.namespace()).WithLabels(c.labels()).
		WithOwnerReferences(c.owner()).WithType(corev1.SecretTypeOpaque).WithData(data)
}

// networkPolicy opens the endpoint to all and the admin port to the operator.
func (c childMaker) networkPolicy() runtime.ApplyConfiguration {
	port := func(name string) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
		return networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromString(name))
	}
	return networkingv1ac.NetworkPolicy(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(c.facts.Mux.Name))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(
				networkingv1ac.NetworkPolicyIngressRule().WithPorts(port("s3")),
				networkingv1ac.NetworkPolicyIngressRule().WithPorts(port("admin")).WithFrom(
					networkingv1ac.NetworkPolicyPeer().WithNamespaceSelector(metav1ac.LabelSelector().
						WithMatchLabels(map[string]string{corev1.LabelMetadataName: c.options.OperatorNamespace})))))
}

func (c childMaker) disruptionBudget() runtime.ApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(c.name, c.namespace()).WithLabels(c.labels()).WithOwnerReferences(c.owner()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(SelectorLabels(c.facts.Mux.Name))))
}

// claims are the claims that the document's file backends lie on, sorted.
func (c childMaker) claims() []string {
	var claims []string
	for i := range c.doc.Backends {
		b := c.facts.Backends[c.doc.Backends[i].Name]
		if c.doc.Backends[i].File != nil && b != nil && b.Spec.File != nil && b.Spec.File.PersistentVolumeClaim != nil {
			claims = append(claims, b.Spec.File.PersistentVolumeClaim.ClaimName)
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// strategy replaces the pods one by one, or, where a store allows one proxy
// only, the old one before the new one.
func (c childMaker) strategy() appsv1.DeploymentStrategyType {
	for i := range c.doc.Backends {
		if singleProxyStore(c.facts, c.facts.Backends[c.doc.Backends[i].Name]) != "" {
			return appsv1.RecreateDeploymentStrategyType
		}
	}
	return appsv1.RollingUpdateDeploymentStrategyType
}

// memoryStores is the memory, in bytes, that memory backends may take.
func (c childMaker) memoryStores() int64 {
	var total int64
	for _, b := range c.doc.Backends {
		if b.Memory != nil {
			total += b.Memory.SizeLimit
		}
	}
	return total
}

// texts turns a map of bounded strings into one of strings.
func texts[V ~string](m map[string]V) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[key] = string(value)
	}
	return out
}

func volumeName(claim string) string { return fmt.Sprintf("claim-%08x", fnv32(claim)) }
