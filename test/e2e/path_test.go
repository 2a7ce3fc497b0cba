package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// The path of a user from the first apply to a rotated store, in one namespace
// and in this order.
var _ = Describe("a mux over real stores", Ordered, Label("demo"), func() {
	const ns = "storagemux-demo"
	var (
		assets  bucket            // the mux
		stores  map[string]bucket // the stores behind it
		acked   = newLedger()     // every object that was acknowledged through the mux
		legacy  map[string]string // what the second store held from the start
		workDir string
	)

	BeforeAll(func(ctx SpecContext) {
		workDir = GinkgoT().TempDir()
		makeNamespace(ctx, ns)
		step("three S3 stores (versitygw), each a pod with its own credentials and bucket")
		stores = startStores(ctx, ns, "store-1", "store-2", "store-3")
		show(ctx, "-n", ns, "get", "pods")

		step("the second store is not new: it holds 20 objects already")
		dir := filepath.Join(workDir, "legacy")
		legacy = map[string]string{}
		for i := range 20 {
			name := fmt.Sprintf("legacy/%02d", i)
			data := randomBytes(8 << 10)
			Expect(os.MkdirAll(filepath.Join(dir, "legacy"), 0o755)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(dir, name), data, 0o644)).To(Succeed())
			legacy[name] = digest(data)
		}
		_, err := stores["store-2"].aws(ctx, "s3", "cp", "--recursive", dir, "s3://"+stores["store-2"].name)
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(6*time.Minute))

	backendOf := func(name, store string) string {
		return manifest("backend.yaml", "NAMESPACE", ns, "NAME", name, "STORE", store, "BUCKET", "bucket-of-"+store)
	}
	muxOf := func(members string) string {
		return manifest("mux.yaml", "NAME", "assets", "KEYSPACE", "spread", "MEMBERS", members)
	}

	It("serves an S3 endpoint after kubectl apply", func(ctx SpecContext) {
		step("kubectl apply: two StorageBackends and a StorageMux, mode failover, keyspace spread")
		text := backendOf("first", "store-1") + "---\n" + backendOf("second", "store-2") + "---\n" + muxOf("[{name: first}, {name: second}]")
		for line := range strings.Lines(text) {
			fmt.Print("   | ", line)
		}
		apply(ctx, ns, text)
		eventually(2*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.IsStatusConditionTrue(mux.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
			g.Expect(mux.Status.BackendsUp).To(Equal("2/2"))
		}, "the mux is Ready, two proxies serve it, both backends are up")
		show(ctx, "-n", ns, "get", "storagemux,storagebackend")
		assets = muxBucket(ctx, ns, "assets")
		note("applications load the Secret assets-storagemux-connection with envFrom")
	}, SpecTimeout(4*time.Minute))

	It("stores and returns objects unchanged", func(ctx SpecContext) {
		step("awscli copies 200 files of 1 KiB to 64 MiB up, and down again")
		up, down := filepath.Join(workDir, "up"), filepath.Join(workDir, "down")
		sums := makeFiles(up, 200)
		_, err := assets.aws(ctx, "s3", "cp", "--recursive", "--only-show-errors", up, "s3://"+assets.name)
		Expect(err).NotTo(HaveOccurred())
		for name, sum := range sums {
			acked.record(name, sum)
		}
		_, err = assets.aws(ctx, "s3", "cp", "--recursive", "--only-show-errors", "s3://"+assets.name+"/files", filepath.Join(down, "files"))
		Expect(err).NotTo(HaveOccurred())
		met(maps.Equal(fileDigests(down), sums), "all 200 files came back with their checksums")

		listing, err := assets.aws(ctx, "s3", "ls", "--recursive", "s3://"+assets.name)
		Expect(err).NotTo(HaveOccurred())
		met(strings.Count(listing, "\n") == 220, "awscli lists 220 objects, those of both stores (%d)", strings.Count(listing, "\n"))
		sizes, err := rclone(ctx, map[string]bucket{"MUX": assets}, "lsf", "-R", "--files-only", "MUX:"+assets.name)
		Expect(err).NotTo(HaveOccurred())
		met(strings.Count(sizes, "\n") == 220, "rclone lists the same number (%d)", strings.Count(sizes, "\n"))
		_, err = rclone(ctx, map[string]bucket{"MUX": assets}, "check", "--one-way", "--download", up, "MUX:"+assets.name)
		met(err == nil, "rclone check finds every file the same (%v)", err)
	}, SpecTimeout(8*time.Minute))

	It("goes on while the first store is down", func(ctx SpecContext) {
		step("the first store is scaled to zero under a steady load: reads of what the second holds, writes of new keys")
		running := startLoad(ctx, assets, "during-outage", legacy, acked)
		time.Sleep(3 * time.Second) // let the load run before the fault
		lag := watchForState(ctx, ns, "assets", "first", v1alpha1.MemberStateDown)
		kubectl(ctx, "-n", ns, "scale", "deployment", "store-1", "--replicas=0")
		seen := <-lag
		met(seen.err == nil, "status shows the store down (%v)", seen.err)
		met(seen.lag < time.Second, "status showed it %s after the first proxy noticed", seen.lag.Round(time.Millisecond))
		show(ctx, "-n", ns, "get", "storagemux,storagebackend")
		eventually(time.Minute, func(g Gomega) {
			out := kubectl(ctx, "-n", ns, "get", "events.events.k8s.io", "-o", "jsonpath={range .items[*]}{.reason} {.regarding.kind}/{.regarding.name} {.note}{\"\\n\"}{end}")
			g.Expect(out).To(MatchRegexp(`BackendDown Storage\w+/\w+ .*first`))
		}, "an event names the store that is down")

		status := statusOf(ctx, assets, "files/000/object 0.bin")
		met(status == http.StatusServiceUnavailable, "a key that only the first store holds answers 503, not 404 (%d)", status)
		time.Sleep(5 * time.Second) // a while of load without the store
		running.stop("while the first store went down and stayed down")

		step("the first store comes back")
		kubectl(ctx, "-n", ns, "scale", "deployment", "store-1", "--replicas=1")
		running = startLoad(ctx, assets, "after-return", legacy, acked)
		eventually(3*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(memberStatus(mux, "first").State).To(Equal(v1alpha1.MemberStateUp))
			g.Expect(mux.Status.BackendsUp).To(Equal("2/2"))
		}, "it recovers by itself")
		running.stop("while the first store returned")
		err := acked.verify(ctx, assets)
		met(err == nil, "all %d objects that were ever acknowledged read back with their checksums (%v)", len(acked.snapshot()), err)
	}, SpecTimeout(8*time.Minute))

	It("rotates a store out without losing or failing anything", func(ctx SpecContext) {
		pods := podIdentities(ctx, ns, "assets")
		running := startLoad(ctx, assets, "during-rotation", legacy, acked)

		step("rotation: a third store is added")
		apply(ctx, ns, backendOf("third", "store-3")+"---\n"+muxOf("[{name: first}, {name: second}, {name: third}]"))
		eventually(time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mux.Status.BackendsUp).To(Equal("3/3"))
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
		}, "every proxy serves three backends")

		step("rotation: the first StorageBackend is deleted; it holds objects that no other store has")
		kubectl(ctx, "-n", ns, "delete", "storagebackend", "first", "--wait=false")
		eventually(time.Minute, func(g Gomega) {
			b, err := getBackend(ctx, ns, "first")
			g.Expect(err).NotTo(HaveOccurred())
			draining := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDraining)
			g.Expect(draining).NotTo(BeNil())
			g.Expect(draining.Reason).To(Equal(v1alpha1.ReasonDrainBlocked))
			g.Expect(draining.Message).To(And(ContainSubstring("assets"), ContainSubstring(v1alpha1.AnnotationDataMoved)))
		}, "it waits: Draining=True, Blocked, and the message says what to do")
		show(ctx, "-n", ns, "get", "storagebackend", "first", "-o", "jsonpath={range .status.conditions[?(@.type==\"Draining\")]}{.reason}: {.message}{\"\\n\"}{end}")
		err := acked.verify(ctx, assets)
		met(err == nil, "what it holds is still served (%v)", err)

		step("rotation: a slow download from the first store begins, rclone copies its objects to the third, the annotation is set")
		slow := startSlowDownload(ctx, assets, "files/000/object 0.bin")
		_, err = rclone(ctx, map[string]bucket{"OLD": stores["store-1"], "NEW": stores["store-3"]},
			"copy", "--metadata", "--exclude", "/.storagemux/**", "OLD:"+stores["store-1"].name, "NEW:"+stores["store-3"].name)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "-n", ns, "annotate", "storagebackend", "first", v1alpha1.AnnotationDataMoved+"=true")
		eventually(time.Minute, func(g Gomega) {
			b, err := getBackend(ctx, ns, "first")
			g.Expect(err).NotTo(HaveOccurred())
			draining := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionDraining)
			g.Expect(draining).NotTo(BeNil())
			g.Expect(draining.Reason).To(Equal(v1alpha1.ReasonDrainInProgress))
		}, "the drain is granted and in progress")
		for range 20 {
			_, err := getBackend(ctx, ns, "first")
			Expect(err).NotTo(HaveOccurred(), "the StorageBackend is there while a transfer runs on it")
			select {
			case <-slow.done:
				Fail("the slow download ended too early to show anything")
			case <-time.After(250 * time.Millisecond):
			}
		}
		note("after 5 s the download still runs and the StorageBackend is still there")
		slow.release()
		<-slow.done
		met(slow.err == nil && slow.sum == acked.snapshot()["files/000/object 0.bin"], "the slow download ended whole (%v)", slow.err)
		eventually(time.Minute, func(g Gomega) {
			_, err := getBackend(ctx, ns, "first")
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}, "then the StorageBackend disappears")
		time.Sleep(2 * time.Second) // a while of load without the store
		running.stop("during the whole rotation")
		met(slices.Equal(pods, podIdentities(ctx, ns, "assets")), "no proxy was replaced or restarted")

		step("the first store is taken away for good")
		scale(ctx, ns, "store-1", 0)
		err = acked.verify(ctx, assets)
		met(err == nil, "all %d objects read back with their checksums (%v)", len(acked.snapshot()), err)
		show(ctx, "-n", ns, "get", "storagemux,storagebackend")
	}, SpecTimeout(10*time.Minute))

	It("lets a replicated store go by itself", func(ctx SpecContext) {
		step("a second mux, keyspace replicated, over two copies of the same data")
		for _, store := range []string{"store-2", "store-3"} {
			copied := bucket{url: stores[store].url, name: "copies", id: stores[store].id, key: stores[store].key}
			_, err := copied.aws(ctx, "s3", "mb", "s3://copies")
			Expect(err).NotTo(HaveOccurred())
			_, err = copied.aws(ctx, "s3", "cp", "--recursive", "--only-show-errors", filepath.Join(workDir, "legacy"), "s3://copies")
			Expect(err).NotTo(HaveOccurred())
		}
		copyOf := func(name, store string) string {
			return manifest("backend.yaml", "NAMESPACE", ns, "NAME", name, "STORE", store, "BUCKET", "copies")
		}
		apply(ctx, ns, copyOf("copy-a", "store-2")+"---\n"+copyOf("copy-b", "store-3")+"---\n"+
			manifest("mux.yaml", "NAME", "copies", "KEYSPACE", "replicated", "MEMBERS", "[{name: copy-a}, {name: copy-b}]"))
		eventually(2*time.Minute, func(g Gomega) {
			mux, err := getMux(ctx, ns, "copies")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
			g.Expect(mux.Status.BackendsUp).To(Equal("2/2"))
		}, "it is ready")
		copies := muxBucket(ctx, ns, "copies")
		running := startLoad(ctx, copies, "writes", legacy, newLedger())
		time.Sleep(2 * time.Second)
		kubectl(ctx, "-n", ns, "delete", "storagebackend", "copy-a", "--wait=false")
		eventually(time.Minute, func(g Gomega) {
			_, err := getBackend(ctx, ns, "copy-a")
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}, "the deleted copy drains and goes by itself")
		time.Sleep(2 * time.Second)
		running.stop("while it went")
		show(ctx, "-n", ns, "get", "storagemux,storagebackend")
	}, SpecTimeout(6*time.Minute))

	It("goes on serving without the operator and without the API server", func(ctx SpecContext) {
		step("the operator is stopped")
		known := maps.Clone(legacy)
		running := startLoad(ctx, assets, "without-operator", known, acked)
		pods := podIdentities(ctx, ns, "assets")
		kubectl(ctx, "-n", operatorNamespace, "scale", "deployment", "storagemux-operator", "--replicas=0")
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "-n", operatorNamespace, "scale", "deployment", "storagemux-operator", "--replicas=2")
			waitForOperator(ctx)
		}, NodeTimeout(3*time.Minute))
		kubectl(ctx, "-n", operatorNamespace, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=operator", "--timeout=2m")
		if ownCluster() {
			step("the API server is stopped too")
			component(ctx, "stop", "kube-apiserver")
			DeferCleanup(func(ctx SpecContext) { component(ctx, "start", "kube-apiserver") }, NodeTimeout(2*time.Minute))
			time.Sleep(10 * time.Second) // long enough for watches to break
			status := statusOf(ctx, assets, "legacy/00")
			met(status == http.StatusOK, "the proxies go on serving (%d)", status)
			step("the API server is started again")
			component(ctx, "start", "kube-apiserver")
			eventually(2*time.Minute, func(g Gomega) {
				g.Expect(k8s.List(ctx, &corev1.NodeList{})).To(Succeed())
			}, "the API server answers")
		} else {
			note("not tried: stopping the API server, since this cluster is not ours to stop")
		}
		step("a store goes down while nobody watches, then the operator is started again")
		kubectl(ctx, "-n", ns, "scale", "deployment", "store-2", "--replicas=0")
		running.cancel() // what only the second store holds answers 503 from here on
		running.done.Wait()
		met(len(running.failures) == 0, "no request failed without the operator: %d reads, %d writes %v", running.reads, running.writes, running.failures)
		_ = statusOf(ctx, assets, "legacy/00")
		kubectl(ctx, "-n", operatorNamespace, "scale", "deployment", "storagemux-operator", "--replicas=2")
		eventually(3*time.Minute, func(g Gomega) {
			_ = statusOf(ctx, assets, "legacy/00")
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(memberStatus(mux, "second").State).To(Equal(v1alpha1.MemberStateDown))
			g.Expect(mux.Status.ProgrammedReplicas).To(BeEquivalentTo(2))
		}, "status is true again: the second store is shown down")
		kubectl(ctx, "-n", ns, "scale", "deployment", "store-2", "--replicas=1")
		eventually(3*time.Minute, func(g Gomega) {
			_ = statusOf(ctx, assets, "legacy/00")
			mux, err := getMux(ctx, ns, "assets")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mux.Status.BackendsUp).To(Equal("2/2"))
		}, "and up once it is back")
		met(slices.Equal(pods, podIdentities(ctx, ns, "assets")), "no proxy was replaced or restarted")
		err := acked.verify(ctx, assets)
		met(err == nil, "all %d objects read back with their checksums (%v)", len(acked.snapshot()), err)
		show(ctx, "-n", ns, "get", "storagemux,storagebackend")
	}, SpecTimeout(12*time.Minute))
})

// component stops or starts a part of the cluster that hack/cluster made.
func component(ctx context.Context, verb, name string) {
	GinkgoHelper()
	_, err := run(ctx, nil, "../../hack/cluster/component.sh", verb, name)
	Expect(err).NotTo(HaveOccurred())
}

// podIdentities are the proxies' pods with their restart counts, sorted.
func podIdentities(ctx context.Context, namespace, mux string) []string {
	GinkgoHelper()
	var ids []string
	for _, pod := range proxyPods(ctx, namespace, mux) {
		restarts := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		ids = append(ids, fmt.Sprintf("%s %s %d", pod.Name, pod.UID, restarts))
	}
	slices.Sort(ids)
	return ids
}

// seenState is how long after a proxy noticed a state the status showed it.
type seenState struct {
	lag time.Duration
	err error
}

// watchForState watches a mux until its member has the state, and compares the
// moment with the one that the first proxy logged.
func watchForState(ctx context.Context, namespace, name, member string, state v1alpha1.MemberState) <-chan seenState {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(restConfig(), client.Options{Scheme: k8s.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watcher.Watch(ctx, &v1alpha1.StorageMuxList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	Expect(err).NotTo(HaveOccurred())
	result := make(chan seenState, 1)
	begun := time.Now()
	go func() {
		defer events.Stop()
		timeout := time.After(90 * time.Second)
		for {
			select {
			case event, ok := <-events.ResultChan():
				mux, isMux := event.Object.(*v1alpha1.StorageMux)
				if !ok || !isMux {
					result <- seenState{err: fmt.Errorf("the watch ended: %v", event.Object)}
					return
				}
				if memberStatus(mux, member).State != state {
					continue
				}
				shown := time.Now()
				noticed, err := firstLogged(ctx, namespace, name, begun, "storage-mux.backend.down")
				result <- seenState{lag: shown.Sub(noticed), err: err}
				return
			case <-timeout:
				result <- seenState{err: fmt.Errorf("member %s did not become %s", member, state)}
				return
			}
		}
	}()
	return result
}

// statusOf reads a key with curl through a presigned URL, without retries.
func statusOf(ctx context.Context, b bucket, key string) int {
	GinkgoHelper()
	var status int
	out, err := run(ctx, nil, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "60", presign(ctx, b, key))
	if err == nil {
		_, err = fmt.Sscan(out, &status)
	}
	Expect(err).NotTo(HaveOccurred())
	return status
}

func presign(ctx context.Context, b bucket, key string) string {
	GinkgoHelper()
	out, err := b.aws(ctx, "s3", "presign", "s3://"+b.name+"/"+key)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

// slowDownload is a download by curl that is held back until it is released.
type slowDownload struct {
	done    chan struct{}
	release func()
	sum     string
	err     error
}

func startSlowDownload(ctx context.Context, b bucket, key string) *slowDownload {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "slow")
	// curl writes into a pipe that is read slowly, then at full speed.
	curl := exec.CommandContext(ctx, "curl", "-sS", "--fail", presign(ctx, b, key))
	pipe, err := curl.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	out, err := os.Create(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(curl.Start()).To(Succeed())
	released := make(chan struct{})
	d := &slowDownload{done: make(chan struct{}), release: func() { close(released) }}
	started := make(chan struct{})
	go func() {
		defer close(d.done)
		piece := make([]byte, 64<<10)
		for first := true; ; first = false {
			n, readErr := pipe.Read(piece)
			if _, err := out.Write(piece[:n]); err != nil {
				d.err = err
				break
			}
			if first {
				close(started)
			}
			if readErr != nil {
				break
			}
			select {
			case <-released:
			case <-time.After(200 * time.Millisecond):
			}
		}
		if err := curl.Wait(); err != nil && d.err == nil {
			d.err = err
		}
		_ = out.Close()
		data, err := os.ReadFile(file)
		if err != nil && d.err == nil {
			d.err = err
		}
		d.sum = digest(data)
	}()
	<-started
	return d
}
