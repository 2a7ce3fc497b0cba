package controller

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

var _ = Describe("what others own", func() {
	It("stays: an autoscaler's number of replicas, and annotations of their own on children", func() {
		w := newWorld()
		w.backend("a")
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 2)
		w.expectServing("assets")

		By("scaling through the subresource, as kubectl scale and autoscalers do")
		scale := &autoscalingv1.Scale{}
		Expect(cluster.SubResource("scale").Get(context.Background(), w.getMux("assets"), scale)).To(Succeed())
		Expect(scale.Status.Replicas).To(Equal(int32(2)))
		Expect(scale.Status.Selector).To(ContainSubstring(v1alpha1.LabelMux + "=assets"))
		scale.Spec.Replicas = 5
		Expect(cluster.SubResource("scale").Update(context.Background(), w.getMux("assets"), client.WithSubResourceBody(scale))).To(Succeed())
		deployment := &appsv1.Deployment{}
		key := w.key(render.ChildName("assets"))
		replicas := func() int32 {
			Expect(cluster.Get(context.Background(), key, deployment)).To(Succeed())
			return *deployment.Spec.Replicas
		}
		Eventually(replicas).WithTimeout(soon).Should(Equal(int32(5)))

		By("annotating children, as admission and operators of others do")
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: key.Name}}
		w.edit(service, func() { metav1.SetMetaDataAnnotation(&service.ObjectMeta, "example.com/injected", "theirs") })
		w.edit(deployment, func() {
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "example.com/injected", "theirs")
			metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "example.com/injected", "theirs")
		})

		By("applying a change of our own to both")
		w.editMux("assets", func(m *v1alpha1.StorageMux) {
			m.Spec.Proxy.ServiceAnnotations = map[string]v1alpha1.AnnotationValue{"example.com/wanted": "ours"}
			m.Spec.Proxy.PodAnnotations = map[string]v1alpha1.AnnotationValue{"example.com/wanted": "ours"}
		})
		Eventually(func() map[string]string {
			Expect(cluster.Get(context.Background(), key, service)).To(Succeed())
			return service.Annotations
		}).WithTimeout(soon).Should(SatisfyAll(HaveKeyWithValue("example.com/wanted", "ours"), HaveKeyWithValue("example.com/injected", "theirs")))
		Eventually(func() map[string]string {
			Expect(cluster.Get(context.Background(), key, deployment)).To(Succeed())
			return deployment.Spec.Template.Annotations
		}).WithTimeout(soon).Should(SatisfyAll(HaveKeyWithValue("example.com/wanted", "ours"), HaveKeyWithValue("example.com/injected", "theirs")))
		Expect(deployment.Annotations).To(HaveKeyWithValue("example.com/injected", "theirs"))
		Expect(replicas()).To(Equal(int32(5)))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})

var _ = Describe("a bundle of certificates", func() {
	It("that changes reaches the proxies", func() {
		w := newWorld()
		one, two := certificate(), certificate()
		bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bundle"}, Data: map[string]string{"ca.crt": one}}
		w.create(bundle)
		w.secret("a", credentials("key-a"))
		w.create(&v1alpha1.StorageBackend{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: v1alpha1.StorageBackendSpec{S3: &v1alpha1.S3Backend{
				Endpoint: "https://store.example.com", Bucket: "bucket",
				Auth:        v1alpha1.BackendAuth{Type: v1alpha1.AuthTypeSecret, SecretRef: &v1alpha1.SecretReference{Name: "a"}},
				CABundleRef: &v1alpha1.CABundleReference{Name: "bundle", Key: "ca.crt"},
			}},
		})
		w.mux("assets", v1alpha1.KeyspaceReplicated, "a")
		w.startPods("assets", 1)
		w.expectServing("assets")
		Expect(w.document("assets").Backend("a").S3.CABundle).To(Equal(one))
		w.edit(bundle, func() { bundle.Data["ca.crt"] = two })
		Eventually(func() string { return w.document("assets").Backend("a").S3.CABundle }).WithTimeout(soon).Should(Equal(two))
		w.expectServing("assets")
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})

// certificate returns a new one, as PEM.
func certificate() string {
	GinkgoHelper()
	admin, err := muxconfig.NewAdmin(time.Now())
	Expect(err).NotTo(HaveOccurred())
	return admin.TLS.Cert
}

func TestTheOperatorsRolesHaveNoWildcard(t *testing.T) {
	files, err := filepath.Glob("../../config/rbac/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no roles: %v", err)
	}
	rules := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range bytes.Split(data, []byte("\n---\n")) {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(text, &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, rule := range role.Rules {
				rules++
				if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs), "*") {
					t.Errorf("%s: %s %s has a wildcard: %+v", file, role.Kind, role.Name, rule)
				}
			}
		}
	}
	if rules == 0 {
		t.Error("no file has a rule")
	}
}
