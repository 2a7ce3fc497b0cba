package v1alpha1_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	apply "github.com/suaveplan/storagemux/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// TestAPIServer runs everything that only a real API server can tell, on one server.
func TestAPIServer(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make test, or set it to what hack/cluster/assets.sh prints")
	}
	server := startAPIServer(t)

	t.Run("takes valid samples and refuses invalid ones", func(t *testing.T) {
		checkSamples(t, func(t *testing.T) putter {
			server.useNewNamespace(t)
			return server
		})
	})
	t.Run("shows the defaults", server.testDefaults)
	t.Run("prints the columns", server.testColumns)
	t.Run("scales through the subresource", server.testScale)
	t.Run("stores the largest status", server.testLargestStatus)
	t.Run("takes a status by server-side apply", server.testApplyStatus)
}

// apiServer is a running API server with the two kinds installed, and the namespace that objects are put into.
type apiServer struct {
	client.Client
	config    *rest.Config
	namespace string
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{crdFolder},
		ErrorIfCRDPathMissing: true,
		// On a machine that is busy with other packages' tests the default of 20 s is too short.
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: time.Minute},
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("starting an API server: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &apiServer{Client: c, config: config}
}

func (s *apiServer) useNewNamespace(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s.namespace = namespace.Name
}

// put creates or replaces obj with the strict field validation that kubectl asks for.
func (s *apiServer) put(ctx context.Context, t *testing.T, obj *unstructured.Unstructured) []string {
	t.Helper()
	obj.SetNamespace(s.namespace)
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(obj.GroupVersionKind())
	err := s.Get(ctx, client.ObjectKeyFromObject(obj), existing)
	switch {
	case apierrors.IsNotFound(err):
		err = s.Create(ctx, obj, client.FieldValidation("Strict"))
	case err == nil:
		obj.SetResourceVersion(existing.GetResourceVersion())
		err = s.Update(ctx, obj, client.FieldValidation("Strict"))
	}
	return complaints(t, err)
}

// notChecked is what the API server adds to errors after which it does not run the rules of the schema.
const notChecked = "some validation rules were not checked because the object was invalid"

// complaints returns the lines that a user reads of err, without the name of the object and without notChecked.
func complaints(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("not an answer of the API server: %v", err)
	}
	var lines []string
	if details := status.ErrStatus.Details; details != nil {
		for _, cause := range details.Causes {
			if strings.Contains(cause.Message, notChecked) {
				continue
			}
			lines = append(lines, cause.Field+": "+cause.Message)
		}
	}
	if len(lines) == 0 {
		_, text, found := strings.Cut(status.ErrStatus.Message, "strict decoding error: ")
		if !found {
			text = status.ErrStatus.Message
		}
		lines = strings.Split(text, ", ")
	}
	return lines
}

const smallestMux = `
apiVersion: storagemux.dev/v1alpha1
kind: StorageMux
metadata: {name: assets}
spec: {mode: failover, keyspace: replicated, backends: [{name: primary}]}
`

const smallestBackend = `
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: primary}
spec: {s3: {region: eu-west-1, bucket: assets, auth: {type: Ambient}}, healthCheck: {}}
`

func (s *apiServer) testDefaults(t *testing.T) {
	s.useNewNamespace(t)
	for text, want := range map[string]string{
		smallestMux: `
backendTimeout: 30s
backends:
- name: primary
frontend:
  auth:
    type: SigV4
health:
  cooldown: 1s
  maxCooldown: 64s
  whenAllDown: Try
keyspace: replicated
mode: failover
onFanoutPartial: Succeed
proxy:
  replicas: 2
  serviceType: ClusterIP
  spool:
    disk: 2Gi
    memory: 64Mi
  type: Deployment
retry:
  initialInterval: 50ms
  maxAttempts: 3
  maxInterval: 1s
`,
		smallestBackend: `
drainTimeout: 10m
healthCheck:
  interval: 10s
  timeout: 2s
maxInFlight: 512
s3:
  addressingStyle: Auto
  auth:
    type: Ambient
  bucket: assets
  region: eu-west-1
`,
	} {
		obj := manifest(t, text)
		if lines := s.put(t.Context(), t, obj); len(lines) > 0 {
			t.Fatalf("refused: %v", lines)
		}
		got, err := yaml.Marshal(obj.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != strings.TrimPrefix(want, "\n") {
			t.Errorf("the spec of %s is stored as\n%swant%s", obj.GetKind(), got, want)
		}
	}
}

// columns asks for a list as kubectl get does and returns its rows, a text for each column that is always shown.
func (s *apiServer) columns(t *testing.T, resource string) []string {
	t.Helper()
	config := rest.CopyConfig(s.config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Get().Namespace(s.namespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range table.Rows {
		var cells []string
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 && column.Name != "Age" {
				cells = append(cells, fmt.Sprint(row.Cells[i]))
			}
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return rows
}

func (s *apiServer) testColumns(t *testing.T) {
	s.useNewNamespace(t)
	for _, text := range []string{smallestMux, smallestBackend} {
		if lines := s.put(t.Context(), t, manifest(t, text)); len(lines) > 0 {
			t.Fatalf("refused: %v", lines)
		}
	}
	ready := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing, LastTransitionTime: metav1.Now()}}
	mux := &v1alpha1.StorageMux{}
	s.get(t, "assets", mux)
	mux.Status.Conditions, mux.Status.BackendsUp, mux.Status.Endpoint = ready, "0/1", "http://assets-storagemux.team-a.svc"
	s.updateStatus(t, mux)
	backend := &v1alpha1.StorageBackend{}
	s.get(t, "primary", backend)
	backend.Status.Conditions, backend.Status.Type, backend.Status.State, backend.Status.UsedByCount = ready, v1alpha1.BackendTypeS3, v1alpha1.MemberStateDown, 1
	s.updateStatus(t, backend)

	for resource, want := range map[string]string{
		"storagemuxes":    "assets | True | failover | 0/1 | http://assets-storagemux.team-a.svc",
		"storagebackends": "primary | True | s3 | down | 1",
	} {
		if rows := s.columns(t, resource); len(rows) != 1 || rows[0] != want {
			t.Errorf("kubectl get %s shows %q, want %q", resource, rows, want)
		}
	}
}

func (s *apiServer) get(t *testing.T, name string, obj client.Object) {
	t.Helper()
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
}

func (s *apiServer) updateStatus(t *testing.T, obj client.Object) {
	t.Helper()
	if err := s.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func (s *apiServer) testScale(t *testing.T) {
	s.useNewNamespace(t)
	if lines := s.put(t.Context(), t, manifest(t, smallestMux)); len(lines) > 0 {
		t.Fatalf("refused: %v", lines)
	}
	mux := &v1alpha1.StorageMux{}
	s.get(t, "assets", mux)
	mux.Status.Replicas, mux.Status.Selector = 2, v1alpha1.LabelMux+"=assets"
	s.updateStatus(t, mux)

	scale := &autoscalingv1.Scale{}
	if err := s.SubResource("scale").Get(t.Context(), mux, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 2 || scale.Status.Replicas != 2 || scale.Status.Selector != v1alpha1.LabelMux+"=assets" {
		t.Errorf("the scale is %+v, %+v", scale.Spec, scale.Status)
	}
	scale.Spec.Replicas = 5
	if err := s.SubResource("scale").Update(t.Context(), mux, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	s.get(t, "assets", mux)
	if got := mux.Spec.Proxy.Replicas; got == nil || *got != 5 {
		t.Errorf("after scaling to 5, spec.proxy.replicas is %v", got)
	}
}

// 256 members with every figure and message at its longest must fit into an object several times over, because etcd refuses
// objects of 1.5 MiB and managed fields come on top.
func (s *apiServer) testLargestStatus(t *testing.T) {
	s.useNewNamespace(t)
	if lines := s.put(t.Context(), t, manifest(t, smallestMux)); len(lines) > 0 {
		t.Fatalf("refused: %v", lines)
	}
	mux := &v1alpha1.StorageMux{}
	s.get(t, "assets", mux)
	const most = 1<<62 - 1
	for i := range v1alpha1.MaxStatusMembers {
		mux.Status.Members = append(mux.Status.Members, v1alpha1.MemberStatus{
			Path: fmt.Sprintf("%s/member-%d", strings.Repeat("a", 63), i),
			Kind: v1alpha1.MemberKindStorageBackend,
			Name: strings.Repeat("b", 63),
			Observation: v1alpha1.Observation{
				State:    v1alpha1.MemberStateDown,
				Replicas: v1alpha1.StateCounts{Up: 10, Down: 10, Draining: 10, Unknown: 10},
				Hits:     most, Misses: most, Errors: most, Timeouts: most, Aborts: most, InFlight: most,
				LatencyMicroseconds: v1alpha1.LatencyStatus{Last: most, P50: most, P99: most},
				ConsecutiveFailures: most,
				LastTransitionTime:  new(metav1.Now()),
				LastError: &v1alpha1.ErrorStatus{
					Code:    "STORAGE_MUX.RECURSION_DEPTH_EXCEEDED",
					Message: strings.Repeat("m", v1alpha1.MaxErrorMessageLength),
				},
			},
		})
	}
	s.updateStatus(t, mux)
	stored := &v1alpha1.StorageMux{}
	s.get(t, "assets", stored)
	encoded, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Status.Members) != v1alpha1.MaxStatusMembers || len(encoded) > 768<<10 {
		t.Errorf("%d members are stored in %d KiB", len(stored.Status.Members), len(encoded)>>10)
	}
}

func (s *apiServer) testApplyStatus(t *testing.T) {
	s.useNewNamespace(t)
	if lines := s.put(t.Context(), t, manifest(t, smallestMux)); len(lines) > 0 {
		t.Fatalf("refused: %v", lines)
	}
	status := apply.StorageMux("assets", s.namespace).WithStatus(apply.StorageMuxStatus().
		WithBucket("assets").
		WithConditions(applymetav1.Condition().
			WithType(v1alpha1.ConditionReady).WithStatus(metav1.ConditionTrue).WithReason(v1alpha1.ReasonServing).
			WithMessage("").WithLastTransitionTime(metav1.Now())).
		WithMembers(apply.MemberStatus().WithPath("primary").WithState(v1alpha1.MemberStateUp).WithHits(3)))
	if err := s.Status().Apply(t.Context(), status, client.FieldOwner("test"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	mux := &v1alpha1.StorageMux{}
	s.get(t, "assets", mux)
	members := mux.Status.Members
	if len(mux.GetConditions()) != 1 || len(members) != 1 || members[0].State != v1alpha1.MemberStateUp || members[0].Hits != 3 {
		t.Errorf("the status is %+v", mux.Status)
	}
}
