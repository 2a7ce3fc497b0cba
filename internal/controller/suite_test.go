package controller

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// The API server of this suite, and a client that caches nothing.
var (
	server  *rest.Config
	cluster client.Client
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator against a real API server")
}

var _ = BeforeSuite(func() {
	log := logr.FromSlogHandler(slog.NewTextHandler(io.MultiWriter(GinkgoWriter, &operatorLog), &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		// A machine that has other work needs longer than the default 20 s.
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	var err error
	server, err = env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	server.QPS, server.Burst = 500, 1000
	cluster, err = client.New(server, client.Options{Scheme: NewScheme()})
	Expect(err).NotTo(HaveOccurred())
})
