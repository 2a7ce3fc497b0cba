package e2e

import (
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// What only a running operator can refuse; what the schema refuses is tested
// with the API types.
var _ = Describe("bad input on a running mux", Ordered, func() {
	const ns = "storagemux-badinput"

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, ns)
		apply(ctx, ns, `apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: ram}
spec: {memory: {sizeLimit: 8Mi}}
---
apiVersion: storagemux.dev/v1alpha1
kind: StorageMux
metadata: {name: small}
spec:
  mode: failover
  keyspace: replicated
  backends: [{name: ram}]
  proxy: {replicas: 1}
`)
		Eventually(func(g Gomega) {
			mux, err := getMux(ctx, ns, "small")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		}).Should(Succeed())
	}, NodeTimeout(4*time.Minute))

	DescribeTable("is named in a condition while what was served is served on",
		func(ctx SpecContext, spec, condition, reason, message string) {
			b := muxBucket(ctx, ns, "small")
			client := b.sdk()
			_, err := client.PutObject(ctx, b.name, "kept", strings.NewReader("kept"), 4, putOptions)
			Expect(err).NotTo(HaveOccurred())
			apply(ctx, ns, "apiVersion: storagemux.dev/v1alpha1\nkind: StorageMux\nmetadata: {name: small}\nspec: "+spec)
			Eventually(func(g Gomega) {
				mux, err := getMux(ctx, ns, "small")
				g.Expect(err).NotTo(HaveOccurred())
				c := meta.FindStatusCondition(mux.Status.Conditions, condition)
				g.Expect(c).NotTo(BeNil())
				g.Expect(c.ObservedGeneration).To(Equal(mux.Generation))
				g.Expect(c.Reason).To(Equal(reason))
				g.Expect(c.Message).To(ContainSubstring(message))
			}).Should(Succeed())
			Expect(proxyPods(ctx, ns, "small")).To(HaveLen(1), "nothing of the refused spec is applied")
			sum, err := readDigest(ctx, client, b.name, "kept")
			Expect(err).NotTo(HaveOccurred())
			Expect(sum).To(Equal(digest([]byte("kept"))))
			apply(ctx, ns, "apiVersion: storagemux.dev/v1alpha1\nkind: StorageMux\nmetadata: {name: small}\nspec: {mode: failover, keyspace: replicated, backends: [{name: ram}], proxy: {replicas: 1}}")
			Eventually(func(g Gomega) {
				mux, err := getMux(ctx, ns, "small")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, condition)).To(BeTrue())
			}).Should(Succeed())
		},
		Entry("a reference to nothing", "{mode: failover, keyspace: replicated, backends: [{name: ram}, {name: nothing}], proxy: {replicas: 1}}",
			v1alpha1.ConditionResolvedRefs, v1alpha1.ReasonBackendNotFound, "spec.backends[nothing]", SpecTimeout(3*time.Minute)),
		Entry("two replicas over a memory backend", "{mode: failover, keyspace: replicated, backends: [{name: ram}], proxy: {replicas: 2}}",
			v1alpha1.ConditionAccepted, v1alpha1.ReasonSingleReplicaRequired, "spec.proxy.replicas", SpecTimeout(3*time.Minute)),
		Entry("a Secret that does not exist", "{mode: failover, keyspace: replicated, backends: [{name: ram}], proxy: {replicas: 1}, frontend: {auth: {secretRefs: [{name: nowhere}]}}}",
			v1alpha1.ConditionResolvedRefs, v1alpha1.ReasonSecretNotFound, "spec.frontend.auth.secretRefs[0]", SpecTimeout(3*time.Minute)),
	)

	It("is refused by the API server where the schema knows better", func(ctx SpecContext) {
		files, err := filepath.Glob("../../config/samples/invalid/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			if strings.Contains(file, "changed") || strings.Contains(file, "immutable") {
				continue // an update of something; tested with the API types
			}
			_, err := run(ctx, nil, "kubectl", "-n", ns, "apply", "--dry-run=server", "-f", file)
			Expect(err).To(HaveOccurred(), file)
		}
	}, SpecTimeout(2*time.Minute))
})
