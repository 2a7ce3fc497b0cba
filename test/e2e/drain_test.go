package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// Writes that race the drain of the store they go to, through three proxies that
// learn of it at different moments. In keyspace spread an object that one of them
// put there too late would be lost with the store.
var _ = Describe("a store that drains under writes through three proxies", Ordered, func() {
	const ns = "storagemux-drain"
	var stores map[string]bucket
	var assets bucket

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, ns)
		names := []string{"store-1", "store-2"}
		stores = startStores(ctx, ns, names...)
		var text strings.Builder
		for _, name := range names {
			text.WriteString(manifest("backend.yaml", "NAMESPACE", ns, "NAME", name, "STORE", name, "BUCKET", "bucket-of-"+name) + "---\n")
		}
		mux := manifest("mux.yaml", "NAME", "assets", "KEYSPACE", "spread", "MEMBERS", "[{name: store-1}, {name: store-2}]")
		apply(ctx, ns, text.String()+strings.Replace(mux, "replicas: 2", "replicas: 3", 1))
		eventually(2*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(3))
			g.Expect(mux.Status.BackendsUp).To(Equal("2/2"))
		}, "three proxies serve two stores")
		assets = muxBucket(ctx, ns, "assets")
	}, NodeTimeout(6*time.Minute))

	draining := func(ctx context.Context, g Gomega, reason string) {
		b, err := getBackend(ctx, ns, "store-1")
		g.Expect(err).NotTo(HaveOccurred())
		condition := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDraining)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason))
		g.Expect(condition.Message).To(ContainSubstring(v1alpha1.AnnotationDataMoved))
	}

	It("takes no acknowledged object with it", func(ctx SpecContext) {
		acked := newLedger()
		var loads []*load
		for _, prefix := range []string{"one", "two", "three", "four", "five", "six"} {
			loads = append(loads, startLoad(ctx, assets, prefix, nil, acked))
		}
		time.Sleep(2 * time.Second) // let the load run before the deletion
		step("store-1, which all writes go to, is deleted under six writers")
		kubectl(ctx, "-n", ns, "delete", "storagebackend", "store-1", "--wait=false")
		eventually(time.Minute, func(g Gomega) { draining(ctx, g, v1alpha1.ReasonDrainBlocked) }, "every proxy has stopped to write to it")
		_, err := rclone(ctx, map[string]bucket{"OLD": stores["store-1"], "NEW": stores["store-2"]},
			"copy", "--metadata", "--exclude", "/.storagemux/**", "OLD:"+stores["store-1"].name, "NEW:"+stores["store-2"].name)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "-n", ns, "annotate", "storagebackend", "store-1", v1alpha1.AnnotationDataMoved+"=true")
		eventually(time.Minute, func(g Gomega) {
			_, err := getBackend(ctx, ns, "store-1")
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}, "what was in it has been copied, and it is gone")
		for _, one := range loads {
			one.stop("while it went")
		}
		scale(ctx, ns, "store-1", 0)
		err = acked.verify(ctx, assets)
		met(err == nil, "all %d objects that were acknowledged are there without it (%v)", len(acked.snapshot()), err)
	}, SpecTimeout(6*time.Minute))
})
