package controller

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// logTail keeps the end of what the operators of this process log.
type logTail struct {
	mu   sync.Mutex
	text []byte
}

const maxLogTail = 16 << 20

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if over := len(l.text) - maxLogTail; over > 0 {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(p), nil
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// operatorLog is what all operators of the suite log, at every level.
var operatorLog logTail

// told is all that an operator has told about the objects of a world, by where.
// Only Secrets, which may hold credentials, are left out.
func (w *world) told() map[string]string {
	GinkgoHelper()
	texts := map[string]string{"the log": operatorLog.String()}
	lists := []client.ObjectList{
		&v1alpha1.StorageMuxList{}, &v1alpha1.StorageBackendList{}, &eventsv1.EventList{}, &corev1.EventList{}, &corev1.PodList{},
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{},
	}
	for _, list := range lists {
		Expect(cluster.List(context.Background(), list, client.InNamespace(w.namespace))).To(Succeed())
		data, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		texts[fmt.Sprintf("%T", list)] = string(data)
	}
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	texts["the metrics"] = fmt.Sprint(families)
	return texts
}

var _ = Describe("credentials", func() {
	It("are told nowhere, whatever happens to them", func() {
		const mark = "MARKED-CREDENTIAL"
		secrets := []string{mark}
		w := newWorld(func(o *Options) { o.RequireSecretLabel = "!forbidden" })
		marked := func(name string) map[string]string {
			return map[string]string{
				v1alpha1.SecretKeyAWSAccessKeyID: "AKID" + name, v1alpha1.SecretKeyAWSSecretAccessKey: mark + name,
				v1alpha1.SecretKeyAWSSessionToken: mark + "TOKEN" + name,
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			w.secret(name, marked(name))
			w.bareBackend(name)
		}
		w.secret("client", marked("client"))
		w.secret("tls", map[string]string{v1alpha1.SecretKeyTLSCertificate: mark, v1alpha1.SecretKeyTLSPrivateKey: mark})
		w.muxOf("pair", true, leaf("b"), leaf("c"))
		w.muxOf("assets", false, leaf("a"), nested("pair"))
		pods := w.startPods("assets", 2)
		w.expectServing("assets")
		remember := func() {
			doc := w.document("assets")
			secrets = append(secrets, doc.Admin.Token.Reveal(), doc.Admin.TLS.Key.Reveal(), doc.Keys.Current.Reveal())
			for _, pair := range doc.Frontend.KeyPairs {
				secrets = append(secrets, pair.SecretAccessKey.Reveal())
			}
		}
		remember()

		By("signing with a Secret, and with a certificate that is none")
		w.editMux("assets", func(m *v1alpha1.StorageMux) {
			m.Spec.Frontend.Auth.SecretRefs = []v1alpha1.SecretReference{{Name: "client"}}
			m.Spec.Frontend.TLSSecretRef = &v1alpha1.SecretReference{Name: "tls"}
		})
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonInvalidSecret)
		w.editMux("assets", func(m *v1alpha1.StorageMux) { m.Spec.Frontend.TLSSecretRef = nil })
		w.expectServing("assets")

		By("taking the keys from a Secret, forbidding it and rotating it")
		secret := w.getSecret("b")
		w.edit(secret, func() { secret.Data = map[string][]byte{"other": []byte(mark)} })
		w.expectBackend("b", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonInvalidSecret)
		w.edit(secret, func() { secret.Labels = map[string]string{"forbidden": "yes"} })
		w.expectBackend("b", v1alpha1.ConditionResolvedRefs, no, v1alpha1.ReasonSecretNotPermitted)
		w.edit(secret, func() { secret.Labels, secret.StringData = nil, marked("rotated") })
		w.expectMux("assets", v1alpha1.ConditionResolvedRefs, yes, v1alpha1.ReasonResolvedRefs)
		w.expectServing("assets")

		By("proxies that refuse, fail and fall silent")
		pods[0].proxy.Reject(w.document("assets"), "members: no such field")
		pods[1].editMember("pair/b", func(m *muxconfig.MemberReport) {
			m.State, m.LastError = muxconfig.StateDown, &muxconfig.MemberError{Code: "STORAGE.ACCESS_DENIED", Message: "the store says no"}
			m.Refused = m.LastError
		})
		pods[1].proxy.Happen(muxconfig.Event{Topic: "storage-mux.backend.down", Path: "pair/b", Message: "pair/b is down"})
		w.expectBackend("b", v1alpha1.ConditionReachable, no, v1alpha1.ReasonBadCredentials)
		w.expectEvent(v1alpha1.KindStorageBackend, "b", "BackendDown")

		By("a lost document, a drain and the end")
		pods[1].editMember("pair/b", func(m *muxconfig.MemberReport) { m.State, m.Refused = muxconfig.StateUp, nil })
		Expect(cluster.Delete(context.Background(), w.getSecret("assets-storagemux-config"))).To(Succeed())
		Eventually(func() *muxconfig.Document { return w.document("assets") }).WithTimeout(soon).ShouldNot(BeNil())
		remember()
		w.deleteBackend("c")
		w.expectGone("c")
		w.expectMux("assets", v1alpha1.ConditionProgrammed, yes, v1alpha1.ReasonProgrammed)
		pods[0].kill()
		pods[1].kill()
		w.expectMux("assets", v1alpha1.ConditionProgrammed, unknown, v1alpha1.ReasonNoReport)

		for where, text := range w.told() {
			for _, secret := range secrets {
				encoded := base64.StdEncoding.EncodeToString([]byte(secret))
				Expect(strings.Contains(text, secret) || strings.Contains(text, encoded)).To(BeFalse(), "%s tells a credential", where)
			}
		}
		By("having looked where something is told indeed")
		told := w.told()
		Expect(told["the log"]).To(ContainSubstring(w.namespace))
		Expect(told["*v1.EventList"]).To(ContainSubstring("BackendDown"))
		Expect(told["the metrics"]).To(ContainSubstring("controller_runtime_reconcile_total"))
		for _, p := range pods {
			Expect(cluster.Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: p.name}})).To(Succeed())
		}
		w.startPods("assets", 1)
		w.expectMux("assets", v1alpha1.ConditionReady, yes, v1alpha1.ReasonServing)
		w.expectKstatus(v1alpha1.KindStorageMux, "assets", status.CurrentStatus)
	})
})
