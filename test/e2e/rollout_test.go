package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// What pods run or mount is the only thing that replaces proxies. Clients that
// repeat nothing must not notice.
var _ = Describe("proxies that are replaced", Ordered, func() {
	const ns = "storagemux-rollout"
	var (
		assets bucket
		acked  = newLedger()
		known  map[string]string
	)

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, ns)
		startStores(ctx, ns, "store-1")
		apply(ctx, ns, manifest("backend.yaml", "NAMESPACE", ns, "NAME", "first", "STORE", "store-1", "BUCKET", "bucket-of-store-1")+
			"---\n"+manifest("mux.yaml", "NAME", "assets", "KEYSPACE", "replicated", "MEMBERS", "[{name: first}]"))
		eventually(2*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
			g.Expect(mux.Status.BackendsUp).To(Equal("1/1"))
		}, "the mux is Ready with two proxies")
		assets = muxBucket(ctx, ns, "assets")
		known = putKnown(ctx, assets, 10)
		assets.once = true // until here the Service may have had no endpoint yet
	}, NodeTimeout(6*time.Minute))

	// underLoad makes a change that replaces every proxy, while requests run.
	underLoad := func(ctx context.Context, what string, change func()) {
		GinkgoHelper()
		step("%s, under a steady load", what)
		before := podIdentities(ctx, ns, "assets")
		running := startLoad(ctx, assets, "during-"+what, known, acked)
		time.Sleep(2 * time.Second) // let the load run before the change
		change()
		eventually(5*time.Minute, func(g Gomega) {
			d := &appsv1.Deployment{}
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: ns, Name: "assets-storagemux"}, d)).To(Succeed())
			g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
			g.Expect(d.Status.UpdatedReplicas).To(BeEquivalentTo(2))
			after := podIdentities(ctx, ns, "assets")
			g.Expect(after).To(HaveLen(2), "the old pods have ended")
			for _, pod := range after {
				g.Expect(slices.Contains(before, pod)).To(BeFalse(), "%s is an old pod", pod)
			}
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, v1alpha1.ConditionProgrammed)).To(BeTrue())
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
		}, "both proxies have been replaced, and the new ones serve")
		time.Sleep(2 * time.Second) // a while of load with the new ones alone
		running.stop("while " + what + " replaced the proxies")
	}

	It("by other resources fail no request", func(ctx SpecContext) {
		underLoad(ctx, "resources", func() {
			kubectl(ctx, "-n", ns, "patch", "storagemux", "assets", "--type=merge", "-p",
				`{"spec":{"proxy":{"resources":{"requests":{"cpu":"60m","memory":"64Mi"},"limits":{"memory":"400Mi"}}}}}`)
		})
	}, SpecTimeout(7*time.Minute))

	It("by the claim of a file backend fail no request", func(ctx SpecContext) {
		underLoad(ctx, "claim", func() {
			apply(ctx, ns, `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: files}
spec:
  file: {persistentVolumeClaim: {claimName: disk}}
---
`+manifest("mux.yaml", "NAME", "assets", "KEYSPACE", "replicated", "MEMBERS", "[{name: first}, {name: files}]"))
		})
	}, SpecTimeout(7*time.Minute))

	It("are more or fewer by kubectl scale, and that fails no request", func(ctx SpecContext) {
		scaled := func(replicas int) {
			GinkgoHelper()
			kubectl(ctx, "-n", ns, "scale", "smux/assets", fmt.Sprintf("--replicas=%d", replicas))
			eventually(3*time.Minute, func(g Gomega) {
				g.Expect(podIdentities(ctx, ns, "assets")).To(HaveLen(replicas))
				mux, err := getMux(ctx, ns, "assets")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(replicas))
			}, "kubectl scale smux/assets --replicas=%d: as many proxies serve", replicas)
		}
		running := startLoad(ctx, assets, "during-scale", known, acked)
		time.Sleep(2 * time.Second)
		scaled(3)
		scaled(2)
		running.stop("while proxies came and went")
	}, SpecTimeout(7*time.Minute))

	It("by another image fail no request", func(ctx SpecContext) {
		if !ownCluster() {
			Skip("not tried: a second name for the image can only be made on the cluster of hack/cluster")
		}
		operator := &appsv1.Deployment{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "storagemux-operator"}, operator)).To(Succeed())
		image := operator.Spec.Template.Spec.Containers[0].Image
		other := image + "-again"
		_, err := run(ctx, nil, "../../hack/cluster/tag.sh", image, other)
		Expect(err).NotTo(HaveOccurred())
		setImage := func(ctx context.Context, name string) {
			GinkgoHelper()
			kubectl(ctx, "-n", operatorNamespace, "set", "env", "deployment/storagemux-operator", "PROXY_IMAGE="+name)
			kubectl(ctx, "-n", operatorNamespace, "rollout", "status", "deployment/storagemux-operator", "--timeout=3m")
		}
		DeferCleanup(func(ctx SpecContext) { setImage(ctx, image) }, NodeTimeout(4*time.Minute))
		underLoad(ctx, "image", func() { setImage(ctx, other) })
		for _, pod := range proxyPods(ctx, ns, "assets") {
			met(pod.Spec.Containers[0].Image == other, "%s runs the other image", pod.Name)
		}
		err = acked.verify(ctx, assets)
		met(err == nil, "all %d objects that were acknowledged read back with their checksums (%v)", len(acked.snapshot()), err)
	}, SpecTimeout(10*time.Minute))
})
