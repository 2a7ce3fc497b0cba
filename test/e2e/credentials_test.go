package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// A StorageMux takes several key pairs at once, and so is a store whose
// credentials can be replaced while they are used.
var _ = Describe("credentials of a store", Ordered, func() {
	const ns = "storagemux-credentials"
	var (
		assets bucket
		acked  = newLedger()
		known  map[string]string
	)

	// pair is a Secret with the key pair of somebody.
	pair := func(name, who, secret string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {AWS_ACCESS_KEY_ID: %s, AWS_SECRET_ACCESS_KEY: %s}\n", name, who, secret)
	}
	// store is the mux that is the store, which takes the pairs of these Secrets.
	store := func(secrets string) string {
		return "---\n" + manifest("mux.yaml", "NAME", "store", "KEYSPACE", "replicated", "MEMBERS", "[{name: inner}]") +
			"  frontend: {bucket: kept, auth: {type: SigV4, secretRefs: " + secrets + "}}\n"
	}
	serving := func(ctx context.Context, mux string) {
		GinkgoHelper()
		eventually(2*time.Minute, func(g Gomega) {
			got, err := getMux(ctx, ns, mux)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(got.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
			g.Expect(got.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
			g.Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
		}, "%s is Ready, and both its proxies serve what is wanted", mux)
	}
	// reachable waits for what the store's condition says, and since when.
	reachable := func(ctx context.Context, status metav1.ConditionStatus, reason string) {
		GinkgoHelper()
		eventually(2*time.Minute, func(g Gomega) {
			b, err := getBackend(ctx, ns, "outer")
			g.Expect(err).NotTo(HaveOccurred())
			c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReachable)
			g.Expect(c).NotTo(BeNil())
			g.Expect(c.Status).To(Equal(status), c.Message)
			if reason != "" {
				g.Expect(c.Reason).To(Equal(reason), c.Message)
			}
		}, "Reachable of the store is %s %s", status, reason)
	}

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, ns)
		startStores(ctx, ns, "store-1")
		apply(ctx, ns, manifest("backend.yaml", "NAMESPACE", ns, "NAME", "inner", "STORE", "store-1", "BUCKET", "bucket-of-store-1")+
			pair("old", "old-user", "old-password")+pair("new", "new-user", "new-password")+store("[{name: old}, {name: new}]"))
		serving(ctx, "store")
		apply(ctx, ns, pair("used", "old-user", "old-password")+fmt.Sprintf(`---
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: outer}
spec:
  s3: {endpoint: "http://store-storagemux.%s.svc", bucket: kept, auth: {type: Secret, secretRef: {name: used}}}
  timeout: 5s
---
`, ns)+manifest("mux.yaml", "NAME", "assets", "KEYSPACE", "replicated", "MEMBERS", "[{name: outer}]"))
		serving(ctx, "assets")
		reachable(ctx, metav1.ConditionTrue, "")
		assets = muxBucket(ctx, ns, "assets")
		known = putKnown(ctx, assets, 10)
		assets.once = true
	}, NodeTimeout(8*time.Minute))

	It("are replaced under load, and no request fails", func(ctx SpecContext) {
		before := podIdentities(ctx, ns, "assets")
		running := startLoad(ctx, assets, "during-rotation", known, acked)
		time.Sleep(2 * time.Second) // let the load run before the change
		step("the Secret gets the new pair, then the store forgets the old one")
		was, err := getMux(ctx, ns, "assets")
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, ns, pair("used", "new-user", "new-password"))
		eventually(time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mux.Status.Revision).To(BeNumerically(">", was.Status.Revision))
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
		}, "both proxies have the new pair")
		apply(ctx, ns, store("[{name: new}]"))
		serving(ctx, "store")
		time.Sleep(3 * time.Second) // a while of load with the new pair alone
		running.stop("while credentials were replaced")
		met(fmt.Sprint(podIdentities(ctx, ns, "assets")) == fmt.Sprint(before), "no proxy was restarted for it")
	}, SpecTimeout(5*time.Minute))

	It("that are wrong are told, and the ones before go on serving", func(ctx SpecContext) {
		running := startLoad(ctx, assets, "during-mistake", known, acked)
		time.Sleep(2 * time.Second) // let the load run before the change
		apply(ctx, ns, pair("used", "new-user", "not-the-password"))
		reachable(ctx, metav1.ConditionFalse, v1alpha1.ReasonBadCredentials)
		time.Sleep(3 * time.Second) // a while of load with what is wrong known
		apply(ctx, ns, pair("used", "new-user", "new-password"))
		reachable(ctx, metav1.ConditionTrue, "")
		running.stop("while the Secret held a wrong pair")
		err := acked.verify(ctx, assets)
		met(err == nil, "all %d objects that were acknowledged read back with their checksums (%v)", len(acked.snapshot()), err)
	}, SpecTimeout(6*time.Minute))
})
