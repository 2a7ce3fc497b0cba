package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

var _ = Describe("a StorageMux", func() {
	It("is served, and says so", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")

		w.expectMux("assets", v1alpha1.ConditionAccepted, yes, v1alpha1.ReasonAccepted)
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonPending)
		w.expectMux("assets", v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonProgressing)
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)
		for _, child := range children("assets") {
			Eventually(func() error {
				return cluster.Get(context.Background(), w.key(child.GetName()), child)
			}).WithTimeout(soon).Should(Succeed(), "%T", child)
			Expect(child.GetLabels()).To(HaveKeyWithValue(v1alpha1.LabelMux, "assets"))
			Expect(metav1.GetControllerOf(child)).To(HaveField("UID", w.getMux("assets").UID))
		}
		Expect(w.getBackend("a").Finalizers).To(ContainElement(v1alpha1.FinalizerDrain))

		w.startPods("assets", 2)
		w.expectServing("assets")
		w.expectMux("assets", v1alpha1.ConditionBackendsHealthy, yes, v1alpha1.ReasonAllUp)
		Eventually(func() v1alpha1.StorageMuxStatus { return w.getMux("assets").Status }).WithTimeout(soon).Should(SatisfyAll(
			HaveField("Replicas", int32(2)), HaveField("ProgrammedReplicas", int32(2)), HaveField("BackendsUp", "2/2"),
			HaveField("Endpoint", "http://assets-storagemux."+w.namespace+".svc"), HaveField("Bucket", "assets"),
			HaveField("ConnectionSecretName", "assets-storagemux-connection"), HaveField("Revision", BeNumerically(">=", 1)),
			HaveField("Selector", ContainSubstring("storagemux.dev/mux=assets")), HaveField("Members", HaveLen(2)),
		))
		w.expectBackend("a", v1alpha1.ConditionReachable, yes, v1alpha1.ReasonReachable)
		w.expectBackend("a", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		Expect(w.getBackend("a").Status.UsedBy).To(Equal([]v1alpha1.MuxReference{{Name: "assets"}}))
		w.expectEvent(v1alpha1.KindStorageMux, "assets", "Programmed")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
		w.expectKstatus(v1alpha1.KindStorageBackend, "a", status.CurrentStatus)

		By("giving applications a Secret to load")
		connection := &corev1.Secret{}
		Expect(cluster.Get(context.Background(), w.key("assets-storagemux-connection"), connection)).To(Succeed())
		pair := w.document("assets").Frontend.KeyPairs[0]
		Expect(connection.Data).To(HaveKeyWithValue(v1alpha1.SecretKeyAWSAccessKeyID, []byte(pair.AccessKeyID)))
		Expect(connection.Data).To(HaveKeyWithValue(v1alpha1.SecretKeyAWSSecretAccessKey, []byte(pair.SecretAccessKey.Reveal())))

		By("writing nothing more while nothing happens")
		before := w.getMux("assets").ResourceVersion
		backend := w.getBackend("a").ResourceVersion
		Consistently(func() string { return w.getMux("assets").ResourceVersion }).WithTimeout(2 * time.Second).Should(Equal(before))
		Expect(w.getBackend("a").ResourceVersion).To(Equal(backend))
	})

	It("serves what it can while a Secret is missing, and all once it is there", func() {
		w := newWorld()
		w.backend("a")
		w.bareBackend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "b")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonSecretNotFound)
		Expect(w.muxCondition("assets", v1alpha1.ConditionResolvedRefs)().Message).To(ContainSubstring("spec.backends[b]"))
		w.expectBackend("b", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonSecretNotFound)
		Expect(w.document("assets").Backend("b")).To(BeNil())

		w.secret("b", credentials("late"))
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, yes, v1alpha1.ReasonResolvedRefs)
		w.expectBackend("b", v1alpha1.ConditionResolvedRefs, yes, v1alpha1.ReasonResolvedRefs)
		w.expectServing("assets")
		Eventually(func() string { return w.getMux("assets").Status.BackendsUp }).WithTimeout(soon).Should(Equal("2/2"))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("has nothing to serve while every member waits for its Secret", func() {
		w := newWorld()
		w.bareBackend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonRefsNotResolved)
		w.expectMux("assets", v1alpha1.ConditionReady, no, v1alpha1.ReasonRefsNotResolved)
		Expect(w.document("assets")).To(BeNil())
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)
	})

	It("keeps the last credentials of a member whose Secret loses its keys, and takes up new ones", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
		w.edit(secret, func() { secret.Data = map[string][]byte{"wrong": []byte("key")} })
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonInvalidSecret)
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		Expect(w.document("assets").Backend("a").S3.Auth.AccessKeyID).To(Equal("key-a"))

		w.edit(secret, func() { secret.StringData = credentials("rotated") })
		Eventually(func() string { return w.document("assets").Backend("a").S3.Auth.AccessKeyID }).WithTimeout(soon).Should(Equal("rotated"))
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, yes, v1alpha1.ReasonResolvedRefs)
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("names a reference to nothing and serves the rest", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a", "nowhere")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonBackendNotFound)
		Expect(w.muxCondition("assets", v1alpha1.ConditionResolvedRefs)().Message).To(ContainSubstring("nowhere"))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("leaves somebody else's object alone and names it", func() {
		w := newWorld()
		foreign := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: render.ChildName("assets")},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}},
		}
		w.create(foreign)
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonChildConflict)
		w.expectMux("assets", v1alpha1.ConditionStalled, yes, v1alpha1.ReasonChildConflict)
		Expect(w.muxCondition("assets", v1alpha1.ConditionProgrammed)().Message).To(ContainSubstring("Service assets-storagemux"))
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.FailedStatus)
		now := &corev1.Service{}
		Expect(cluster.Get(context.Background(), w.key(foreign.Name), now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(foreign.ResourceVersion))

		Expect(cluster.Delete(context.Background(), foreign)).To(Succeed())
		w.editMux("assets", func(m *v1alpha1.StorageMux) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, "look", "again") })
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("does not write its document over somebody else's Secret", func() {
		w := newWorld()
		w.secret(render.ConfigSecretName("assets"), map[string]string{"mine": "own"})
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.expectMux("assets", v1alpha1.ConditionProgrammed, no, v1alpha1.ReasonChildConflict)
		secret := &corev1.Secret{}
		Expect(cluster.Get(context.Background(), w.key(render.ConfigSecretName("assets")), secret)).To(Succeed())
		Expect(secret.Data).To(Equal(map[string][]byte{"mine": []byte("own")}))

		Expect(cluster.Delete(context.Background(), secret)).To(Succeed())
		w.startPods("assets", 1)
		w.expectServing("assets")
	})

	It("brings back a child that is deleted or changed", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		key := w.key(render.ChildName("assets"))
		for _, child := range children("assets") {
			Expect(cluster.Get(context.Background(), w.key(child.GetName()), child)).To(Succeed())
			uid := child.GetUID()
			Expect(cluster.Delete(context.Background(), child, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			Eventually(func() bool {
				err := cluster.Get(context.Background(), w.key(child.GetName()), child)
				return err == nil && child.GetUID() != uid
			}).WithTimeout(soon).Should(BeTrue(), "%T", child)
		}
		service := &corev1.Service{}
		Expect(cluster.Get(context.Background(), key, service)).To(Succeed())
		service.Spec.Selector["more"] = "than-wanted"
		service.Spec.Ports[0].Port = 8888
		Expect(cluster.Update(context.Background(), service)).To(Succeed())
		Eventually(func() int32 {
			Expect(cluster.Get(context.Background(), key, service)).To(Succeed())
			return service.Spec.Ports[0].Port
		}).WithTimeout(soon).Should(Equal(int32(80)))

		By("writing the document again, with the material that applications and proxies hold")
		before := w.document("assets")
		Expect(cluster.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: render.ConfigSecretName("assets")}})).To(Succeed())
		Eventually(func() *muxconfig.Document { return w.document("assets") }).WithTimeout(soon).Should(SatisfyAll(
			Not(BeNil()), HaveField("Revision", before.Revision+1), HaveField("Frontend.KeyPairs", before.Frontend.KeyPairs)))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("has proxies that show what they are asked to, and no longer when that is taken back", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		container := func() corev1.Container {
			deployment := &appsv1.Deployment{}
			Expect(cluster.Get(context.Background(), w.key(render.ChildName("assets")), deployment)).To(Succeed())
			return deployment.Spec.Template.Spec.Containers[0]
		}
		plain := container()
		Expect(plain.Env).To(BeEmpty())
		w.editMux("assets", func(m *v1alpha1.StorageMux) {
			m.Spec.Proxy.LogLevel, m.Spec.Proxy.AccessLog, m.Spec.Proxy.Profiling = v1alpha1.LogLevelDebug, v1alpha1.AccessLogAll, true
			m.Spec.Proxy.Env = []v1alpha1.ProxyEnvVar{
				{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector:4318"},
				{Name: "OTEL_RESOURCE_ATTRIBUTES", Value: "team=$(TEAM)"},
			}
		})
		Eventually(container).WithTimeout(soon).Should(SatisfyAll(
			HaveField("Args", ContainElements("--log-level=DEBUG", "--access-log=all", "--pprof")),
			HaveField("Env", Equal([]corev1.EnvVar{
				{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector:4318"},
				{Name: "OTEL_RESOURCE_ATTRIBUTES", Value: "team=$$(TEAM)"},
			}))))
		w.editMux("assets", func(m *v1alpha1.StorageMux) {
			m.Spec.Proxy.LogLevel, m.Spec.Proxy.AccessLog, m.Spec.Proxy.Profiling, m.Spec.Proxy.Env = "", "", false, nil
		})
		Eventually(container).WithTimeout(soon).Should(Equal(plain))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("changes nothing while it is paused", func() {
		w := newWorld()
		w.backend("a")
		w.backend("b")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.editMux("assets", func(m *v1alpha1.StorageMux) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationPaused, v1alpha1.AnnotationTrue)
			m.Spec.Backends = append(m.Spec.Backends, v1alpha1.Member{Name: "b"})
		})
		w.expectMux("assets", v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonPaused)
		Expect(w.document("assets").Backend("b")).To(BeNil())
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.InProgressStatus)

		w.editMux("assets", func(m *v1alpha1.StorageMux) { delete(m.Annotations, v1alpha1.AnnotationPaused) })
		Eventually(func() *muxconfig.Backend { return w.document("assets").Backend("b") }).WithTimeout(soon).ShouldNot(BeNil())
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})

	It("uses only Secrets with the label that the operator requires", func() {
		w := newWorld(func(o *Options) { o.RequireSecretLabel = "storagemux.dev/use=allowed" })
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonSecretNotPermitted)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
		w.edit(secret, func() { secret.Labels = map[string]string{"storagemux.dev/use": "allowed"} })
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, yes, v1alpha1.ReasonResolvedRefs)
		w.startPods("assets", 1)
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})

// children are empty objects with the names of a mux's children.
func children(mux string) []client.Object {
	name := metav1.ObjectMeta{Name: render.ChildName(mux)}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: name}, &corev1.Service{ObjectMeta: name}, &corev1.ServiceAccount{ObjectMeta: name},
		&rbacv1.Role{ObjectMeta: name}, &rbacv1.RoleBinding{ObjectMeta: name},
		&policyv1.PodDisruptionBudget{ObjectMeta: name}, &networkingv1.NetworkPolicy{ObjectMeta: name},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: render.ConnectionSecretName(mux)}},
	}
}
