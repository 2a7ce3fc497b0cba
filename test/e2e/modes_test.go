package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// Every mode over three stores, seen through the mux and in the stores
// themselves. Each mux has a prefix of its own in the stores' buckets.
var _ = Describe("each mode", Ordered, func() {
	const ns = "storagemux-modes"
	names := []string{"store-1", "store-2", "store-3"}
	var stores map[string]bucket

	// member is one entry of a mux's list: where it is, and what else it says.
	type member struct{ store, more string }
	backends := func(mux string, members ...member) string {
		var text strings.Builder
		for i, m := range members {
			fmt.Fprintf(&text, `---
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: %[1]s-%[2]d}
spec:
  s3:
    endpoint: http://%[3]s.%[4]s.svc:9000
    bucket: bucket-of-%[3]s
    prefix: %[1]s/
    auth: {type: Secret, secretRef: {name: %[3]s}}
  timeout: 5s
  drainTimeout: 1m
  healthCheck: {interval: 2s, timeout: 2s}
`, mux, i+1, m.store, ns)
		}
		return text.String()
	}
	muxOf := func(name, mode, keyspace, proxy string, list ...string) string {
		return fmt.Sprintf(`---
apiVersion: storagemux.dev/v1alpha1
kind: StorageMux
metadata: {name: %s}
spec:
  mode: %s
  keyspace: %s
  backends: [%s]
  proxy: %s
`, name, mode, keyspace, strings.Join(list, ", "), proxy)
	}
	simple := func(name, mode, keyspace string, members ...member) string {
		var list []string
		for i, m := range members {
			list = append(list, fmt.Sprintf("{name: %s-%d%s}", name, i+1, m.more))
		}
		return backends(name, members...) + muxOf(name, mode, keyspace, "{replicas: 1}", list...)
	}
	// ladder is a StorageBackend that is a fallback URI over two others.
	const ladder = `---
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: ladder}
spec:
  fallback: {uri: "fallback://?u=backend%3A%2F%2Fladder-1%2Fbase%2F&u=backend%3A%2F%2Fladder-2%2Fbase%2F"}
`
	// held returns which stores have the key of a mux.
	held := func(ctx context.Context, mux, key string) []string {
		var has []string
		for _, name := range names {
			path := mux + "/" + key
			if mux == "ladder" {
				path = mux + "/base/" + key
			}
			_, err := stores[name].sdk().StatObject(ctx, stores[name].name, path, minio.StatObjectOptions{})
			if err == nil {
				has = append(has, name)
			}
		}
		return has
	}
	put := func(ctx context.Context, b bucket, key string, data []byte) error {
		_, err := b.sdk().PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{PartSize: 5 << 20})
		return err
	}
	muxes := map[string]bucket{}
	ready := func(ctx context.Context, name, up string) {
		GinkgoHelper()
		eventually(2*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
			g.Expect(mux.Status.BackendsUp).To(Equal(up))
		}, "%s is Ready with %s backends up", name, up)
	}

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, ns)
		stores = startStores(ctx, ns, names...)
		shared := []member{{"store-1", ""}, {"store-1", ""}}
		apply(ctx, ns, simple("mirror", "mirror", "replicated", member{"store-1", ""}, member{"store-2", ""}, member{"store-3", ""})+
			simple("shield", "shield", "replicated", member{"store-1", ""}, member{"store-2", ""}, member{"store-3", ""})+
			simple("round", "round-robin", "replicated", shared...)+
			simple("weighted", "weighted", "replicated", member{"store-1", ", weight: 3"}, member{"store-1", ", weight: 1"})+
			simple("sticky", "sticky-by-key", "spread", member{"store-1", ""}, member{"store-2", ""}, member{"store-3", ""})+
			backends("nested", member{"store-1", ""}, member{"store-2", ""}, member{"store-3", ""})+
			muxOf("pair", "mirror", "replicated", "{type: None}", "{name: nested-1}", "{name: nested-2}")+
			muxOf("nested", "failover", "replicated", "{replicas: 1}", "{name: pair, ref: {kind: StorageMux}}", "{name: nested-3}")+
			backends("ladder", member{"store-1", ""}, member{"store-2", ""})+ladder+
			muxOf("ladder", "failover", "replicated", "{replicas: 1}", "{name: ladder}"))
		for name, up := range map[string]string{"mirror": "3/3", "shield": "3/3", "round": "2/2", "weighted": "2/2", "sticky": "3/3", "nested": "3/3"} {
			ready(ctx, name, up)
			muxes[name] = muxBucket(ctx, ns, name)
		}
		eventually(2*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "ladder")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
			for _, name := range []string{"ladder", "ladder-1", "ladder-2"} {
				b, err := getBackend(ctx, ns, name)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(b.Status.UsedBy).To(HaveLen(1), name)
				g.Expect(b.Status.UsedBy[0].Name).To(Equal("ladder"), name)
			}
		}, "ladder, whose only member is a fallback URI, is Ready, and its candidates know who uses them")
		muxes["ladder"] = muxBucket(ctx, ns, "ladder")
	}, NodeTimeout(6*time.Minute))

	It("stores and returns objects, whole and in parts", func(ctx SpecContext) {
		step("each mux gets a small object and one of 12 MiB in parts")
		large := randomBytes(12 << 20)
		all := names
		for name, want := range map[string][]string{
			"mirror": all, "shield": all, "round": all[:1], "weighted": all[:1], "nested": all[:2], "sticky": nil,
			"ladder": all[:2],
		} {
			b := muxes[name]
			for key, data := range map[string][]byte{"small": []byte("hello"), "large": large} {
				// On a busy machine a store may be slow enough to be left out of
				// a write; then it is named, and the next one reaches it.
				eventually(time.Minute, func(g Gomega) {
					g.Expect(put(ctx, b, key, data)).To(Succeed())
					if want != nil {
						g.Expect(held(ctx, name, key)).To(Equal(want))
					}
				}, "%s: %q is stored on %v", name, key, want)
				sum, err := readDigest(ctx, b.sdk(), b.name, key)
				Expect(err).NotTo(HaveOccurred(), name)
				met(sum == digest(data), "%s returns %q as it was sent", name, key)
			}
		}
	}, SpecTimeout(4*time.Minute))

	It("spreads keys by their names where it is sticky", func(ctx SpecContext) {
		b := muxes["sticky"]
		on := map[string]int{}
		for i := range 30 {
			key := fmt.Sprintf("key-%02d", i)
			Expect(put(ctx, b, key, []byte(key))).To(Succeed())
			has := held(ctx, "sticky", key)
			Expect(has).To(HaveLen(1), key)
			on[has[0]]++
		}
		met(len(on) == 3, "30 keys are spread over all three stores: %v", on)
		listing, err := b.aws(ctx, "s3", "ls", "--recursive", "s3://"+b.name+"/key-")
		Expect(err).NotTo(HaveOccurred())
		met(strings.Count(listing, "\n") == 30, "the list is the union of the three (%d)", strings.Count(listing, "\n"))
	}, SpecTimeout(2*time.Minute))

	It("keeps its promise while the first store is down", func(ctx SpecContext) {
		step("store-1 is scaled to zero")
		scale(ctx, ns, "store-1", 0)
		ready(ctx, "mirror", "2/3")
		ready(ctx, "nested", "2/3")
		for _, name := range []string{"mirror", "nested"} {
			b := muxes[name]
			met(put(ctx, b, "while-down", []byte("x")) == nil, "%s takes writes", name)
			sum, err := readDigest(ctx, b.sdk(), b.name, "small")
			met(err == nil && sum == digest([]byte("hello")), "%s returns what was stored before (%v)", name, err)
		}
		met(slices.Equal(held(ctx, "nested", "while-down"), []string{"store-2"}), "nested: the pair's other store has the write")
		mux, err := getMux(ctx, ns, "mirror")
		Expect(err).NotTo(HaveOccurred())
		eventually(time.Minute, func(g Gomega) {
			mux, err = getMux(ctx, ns, "mirror")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mux.Status.Totals).NotTo(BeNil())
			g.Expect(mux.Status.Totals.FanoutPartials).To(BeNumerically(">", 0))
		}, "mirror's status counts the write that one store missed")

		b := muxes["ladder"]
		sum, err := readDigest(ctx, b.sdk(), b.name, "small")
		met(err == nil && sum == digest([]byte("hello")), "ladder: the second candidate has it (%v)", err)

		b = muxes["shield"]
		sum, err = readDigest(ctx, b.sdk(), b.name, "small")
		met(err == nil && sum == digest([]byte("hello")), "shield reads from a mirror (%v)", err)
		err = put(ctx, b, "while-down", []byte("x"))
		met(minio.ToErrorResponse(err).StatusCode == http.StatusServiceUnavailable, "shield refuses writes without its origin (%v)", err)
		met(len(held(ctx, "shield", "while-down")) == 0, "and no mirror has that write")
		status := statusOf(ctx, muxes["sticky"], "nowhere")
		met(status == http.StatusServiceUnavailable, "sticky, spread: a key that may be on the store that is down answers 503, not 404 (%d)", status)

		step("store-1 comes back")
		scale(ctx, ns, "store-1", 1)
		for name, up := range map[string]string{"mirror": "3/3", "shield": "3/3", "nested": "3/3", "sticky": "3/3"} {
			ready(ctx, name, up)
		}
	}, SpecTimeout(6*time.Minute))

	It("changes over while it runs", func(ctx SpecContext) {
		step("kubectl patch smux: shield becomes failover")
		kubectl(ctx, "-n", ns, "patch", "smux", "shield", "--type=merge", "-p", `{"spec":{"mode":"failover"}}`)
		b := muxes["shield"]
		eventually(time.Minute, func(g Gomega) {
			key := fmt.Sprintf("after-%d", time.Now().UnixNano())
			g.Expect(put(ctx, b, key, []byte("x"))).To(Succeed())
			g.Expect(held(ctx, "shield", key)).To(Equal([]string{"store-1"}))
		}, "writes go to the first store alone")
		note("nothing restarted: the proxies took the new mode from their document")
	}, SpecTimeout(2*time.Minute))
})
