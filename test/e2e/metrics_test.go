package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the operator's metrics", func() {
	It("are for those alone who may read them", func(ctx SpecContext) {
		const ns = "storagemux-metrics"
		makeNamespace(ctx, ns)
		address := strings.Replace(reach(ctx, operatorNamespace, "storagemux-operator-metrics"), "http://", "https://", 1)
		status := func(ctx context.Context, more ...string) string {
			out, err := run(ctx, nil, "curl", append([]string{"-sk", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "30", address + "/metrics"}, more...)...)
			Expect(err).NotTo(HaveOccurred())
			return out
		}
		met(status(ctx) == "401", "without a token: %s", status(ctx))
		token := "Authorization: Bearer " + strings.TrimSpace(kubectl(ctx, "-n", ns, "create", "token", "default"))
		met(status(ctx, "-H", token) == "403", "with the token of somebody else: %s", status(ctx, "-H", token))
		const binding = "storagemux-metrics-test"
		kubectl(ctx, "create", "clusterrolebinding", binding, "--clusterrole=storagemux-metrics-reader", "--serviceaccount="+ns+":default")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "clusterrolebinding", binding) }, NodeTimeout(time.Minute))
		eventually(time.Minute, func(g Gomega) { g.Expect(status(ctx, "-H", token)).To(Equal("200")) }, "with the token of one who may read them")
	}, SpecTimeout(5*time.Minute))
})
