package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// The environment in which hack/e2e.sh runs the tests.
const (
	// envKubeconfig is the cluster.
	envKubeconfig = "KUBECONFIG"
	// envOwn is "true" on the cluster that hack/cluster made: there the
	// tests reach services by their addresses and may stop the API server.
	envOwn = "STORAGEMUX_OWN_CLUSTER"
	// envStoreImage is the image of the S3 stores.
	envStoreImage = "STORAGEMUX_STORE_IMAGE"
	// envKeep leaves the demo's resources for the reader to look at.
	envKeep = "STORAGEMUX_KEEP"
)

const operatorNamespace = "storagemux-system"

var k8s client.Client

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "end to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	for _, name := range []string{envKubeconfig, envOwn, envStoreImage} {
		if os.Getenv(name) == "" {
			Fail(name + " is not set; run the tests through make test-e2e or make demo")
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(envKubeconfig))
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 50, 100
	log.SetLogger(GinkgoLogr)
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	k8s, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	waitForOperator(ctx)
})

func ownCluster() bool { return os.Getenv(envOwn) == "true" }

func waitForOperator(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		operator := &appsv1.Deployment{}
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "storagemux-operator"}, operator)).To(Succeed())
		g.Expect(operator.Status.ReadyReplicas).To(BeNumerically(">=", 1), "ready replicas of the operator")
	}).Should(Succeed())
}

// step prints a line that says what comes next.
func step(format string, args ...any) {
	fmt.Printf("\n== %s\n", fmt.Sprintf(format, args...))
}

// note prints a line of explanation.
func note(format string, args ...any) {
	fmt.Printf("   %s\n", fmt.Sprintf(format, args...))
}

// met prints one line for an expectation that holds, and fails the spec with
// one for an expectation that does not.
func met(ok bool, format string, args ...any) {
	GinkgoHelper()
	text := fmt.Sprintf(format, args...)
	if !ok {
		fmt.Printf("   MISSED  %s\n", text)
		Fail("missed: " + text)
	}
	fmt.Printf("   met     %s\n", text)
}

// eventually is met once f holds. It reports how long that took.
func eventually(timeout time.Duration, f func(g Gomega), format string, args ...any) {
	GinkgoHelper()
	start := time.Now()
	text := fmt.Sprintf(format, args...)
	ok := Eventually(f).WithTimeout(timeout).Should(Succeed(), func() string {
		fmt.Printf("   MISSED  %s\n", text)
		return "missed: " + text
	})
	met(ok, "%s (after %s)", text, time.Since(start).Round(100*time.Millisecond))
}

// run runs a program and returns what it prints; stderr is in the error.
func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(plainEnviron(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// plainEnviron is this process's environment without settings that are meant
// for other S3 clients of the machine.
func plainEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "AWS_") || strings.HasPrefix(entry, "RCLONE_")
	})
}

// kubectl runs kubectl, and fails the spec if it fails.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := run(ctx, nil, "kubectl", args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// show prints a kubectl command and its output.
func show(ctx context.Context, args ...string) {
	GinkgoHelper()
	fmt.Printf("   $ kubectl %s\n", strings.Join(args, " "))
	out := kubectl(ctx, args...)
	for line := range strings.Lines(out) {
		fmt.Print("   ", line)
	}
}

// manifest reads a file of testdata and fills in names.
func manifest(name string, values ...string) string {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	Expect(err).NotTo(HaveOccurred())
	return strings.NewReplacer(values...).Replace(string(data))
}

// apply applies manifests with kubectl, as a user would.
func apply(ctx context.Context, namespace, text string) {
	GinkgoHelper()
	_, err := tryApply(ctx, namespace, text)
	Expect(err).NotTo(HaveOccurred())
}

func tryApply(ctx context.Context, namespace, text string) (string, error) {
	file, err := os.CreateTemp("", "storagemux-*.yaml")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(text); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return run(ctx, nil, "kubectl", "-n", namespace, "apply", "-f", file.Name())
}

// makeNamespace creates a namespace with the restricted pod security standard
// and removes it after the spec, unless it is to be kept.
func makeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	apply(ctx, "default", `apiVersion: v1
kind: Namespace
metadata:
  name: `+name+`
  labels: {pod-security.kubernetes.io/enforce: restricted}
`)
	DeferCleanup(func(ctx SpecContext) {
		if os.Getenv(envKeep) == "true" {
			return
		}
		removeNamespace(ctx, name)
	}, NodeTimeout(4*time.Minute))
}

// removeNamespace removes the muxes first: Kubernetes removes the pods of a
// namespace before all else, and then looks again after half of their grace
// period, which for proxies is minutes.
func removeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	kubectl(ctx, "-n", name, "delete", "storagemuxes", "--all", "--wait=true", "--timeout=1m")
	kubectl(ctx, "-n", name, "wait", "--for=delete", "pod", "-l", v1alpha1.LabelMux, "--timeout=2m")
	kubectl(ctx, "-n", name, "delete", "storagebackends", "--all", "--wait=true", "--timeout=1m")
	kubectl(ctx, "delete", "namespace", name, "--wait=true", "--timeout=2m")
}

// scale sets a Deployment's replicas, and waits until as many are ready.
func scale(ctx context.Context, namespace, name string, replicas int) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "scale", "deployment", name, fmt.Sprintf("--replicas=%d", replicas))
	Eventually(func(g Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)).To(Succeed())
		g.Expect(d.Status.Replicas).To(BeEquivalentTo(replicas))
		g.Expect(d.Status.ReadyReplicas).To(BeEquivalentTo(replicas))
	}).Should(Succeed(), "%s/%s has %d ready replicas", namespace, name, replicas)
}

func proxyPods(ctx context.Context, namespace, mux string) []corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(k8s.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelMux: mux})).To(Succeed())
	return pods.Items
}

func getMux(ctx context.Context, namespace, name string) (*v1alpha1.StorageMux, error) {
	mux := &v1alpha1.StorageMux{}
	return mux, k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, mux)
}

func getBackend(ctx context.Context, namespace, name string) (*v1alpha1.StorageBackend, error) {
	backend := &v1alpha1.StorageBackend{}
	return backend, k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, backend)
}

func memberStatus(mux *v1alpha1.StorageMux, path string) v1alpha1.MemberStatus {
	for _, m := range mux.Status.Members {
		if m.Path == path {
			return m
		}
	}
	return v1alpha1.MemberStatus{}
}
