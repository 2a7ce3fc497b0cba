package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// bucket is an S3 bucket as a client sees it.
type bucket struct {
	url, name, id, key string
	// once: sdk's client sends no request a second time.
	once bool
}

// muxBucket reads the connection Secret of a mux, as an application does.
func muxBucket(ctx context.Context, namespace, mux string) bucket {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: mux + "-storagemux-connection"}, secret)).To(Succeed())
	value := func(key string) string {
		Expect(secret.Data).To(HaveKey(key))
		return string(secret.Data[key])
	}
	Expect(value(v1alpha1.ConnectionKeyEndpoint)).To(HavePrefix("http://" + mux + "-storagemux." + namespace + ".svc"))
	return bucket{
		url:  reach(ctx, namespace, mux+"-storagemux"),
		name: value(v1alpha1.ConnectionKeyBucket),
		id:   value(v1alpha1.SecretKeyAWSAccessKeyID),
		key:  value(v1alpha1.SecretKeyAWSSecretAccessKey),
	}
}

// startStores starts S3 stores, makes a bucket in each, and returns those by the
// names of the stores.
func startStores(ctx context.Context, namespace string, names ...string) map[string]bucket {
	GinkgoHelper()
	for _, name := range names {
		apply(ctx, namespace, manifest("stores.yaml", "STORE", name, "IMAGE", os.Getenv(envStoreImage)))
	}
	stores := map[string]bucket{}
	for _, name := range names {
		kubectl(ctx, "-n", namespace, "rollout", "status", "deployment/"+name, "--timeout=3m")
		b := storeBucket(ctx, namespace, name, "bucket-of-"+name)
		Eventually(func() error {
			_, err := b.aws(ctx, "s3", "mb", "s3://"+b.name)
			return err
		}).Should(Succeed())
		stores[name] = b
	}
	return stores
}

// putKnown stores n objects of 64 KiB and returns their digests by key.
func putKnown(ctx context.Context, b bucket, n int) map[string]string {
	GinkgoHelper()
	known := map[string]string{}
	for i := range n {
		key, data := fmt.Sprintf("known/%d", i), randomBytes(64<<10)
		_, err := b.sdk().PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), putOptions)
		Expect(err).NotTo(HaveOccurred())
		known[key] = digest(data)
	}
	return known
}

func storeBucket(ctx context.Context, namespace, store, name string) bucket {
	GinkgoHelper()
	return bucket{url: reach(ctx, namespace, store), name: name, id: store + "-user", key: store + "-password"}
}

// reach returns a URL at which this machine reaches a Service: its own address
// on the cluster of hack/cluster, a forwarded port on any other.
func reach(ctx context.Context, namespace, service string) string {
	GinkgoHelper()
	svc := &corev1.Service{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: service}, svc)).To(Succeed())
	port := svc.Spec.Ports[0].Port
	if ownCluster() {
		return fmt.Sprintf("http://%s:%d", svc.Spec.ClusterIP, port)
	}
	forward := exec.Command("kubectl", "-n", namespace, "port-forward", "service/"+service, fmt.Sprintf(":%d", port))
	stdout, err := forward.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(forward.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = forward.Process.Kill()
		_ = forward.Wait()
	})
	line := make([]byte, 256)
	n, err := stdout.Read(line)
	Expect(err).NotTo(HaveOccurred())
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	found := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindSubmatch(line[:n])
	Expect(found).NotTo(BeNil(), "kubectl port-forward printed %q", line[:n])
	return "http://127.0.0.1:" + string(found[1])
}

func (b bucket) env() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + b.id, "AWS_SECRET_ACCESS_KEY=" + b.key, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + awsConfig(),
	}
}

// awsConfig writes awscli's settings.
var awsConfig = sync.OnceValue(func() string {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("storagemux-aws-%d", os.Getpid()))
	text := "[default]\ns3 =\n  addressing_style = path\n  signature_version = s3v4\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}
	return file
})

// aws runs awscli against the bucket's server.
func (b bucket) aws(ctx context.Context, args ...string) (string, error) {
	return run(ctx, b.env(), "aws", append([]string{"--endpoint-url", b.url}, args...)...)
}

// rclone runs rclone with remotes named after the map's keys.
func rclone(ctx context.Context, remotes map[string]bucket, args ...string) (string, error) {
	env := []string{"RCLONE_CONFIG=" + os.DevNull}
	for name, b := range remotes {
		prefix := "RCLONE_CONFIG_" + name + "_"
		env = append(env, prefix+"TYPE=s3", prefix+"PROVIDER=Other", prefix+"ENDPOINT="+b.url, prefix+"ACCESS_KEY_ID="+b.id,
			prefix+"SECRET_ACCESS_KEY="+b.key, prefix+"FORCE_PATH_STYLE=true")
	}
	return run(ctx, env, "rclone", args...)
}

// sdk is a client with the SDK's default retries, or with none.
func (b bucket) sdk() *minio.Client {
	GinkgoHelper()
	u, err := url.Parse(b.url)
	Expect(err).NotTo(HaveOccurred())
	options := &minio.Options{Creds: credentials.NewStaticV4(b.id, b.key, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath}
	if b.once {
		options.MaxRetries = 1 // the first try counts
	}
	c, err := minio.New(u.Host, options)
	Expect(err).NotTo(HaveOccurred())
	return c
}

var putOptions minio.PutObjectOptions

// ledger holds what was acknowledged: the digest of each key.
type ledger struct {
	mu      sync.Mutex
	digests map[string]string
}

func newLedger() *ledger { return &ledger{digests: map[string]string{}} }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (l *ledger) record(key, sum string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.digests[key] = sum
}

func (l *ledger) snapshot() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.digests)
}

// verify reads every key through b and compares digests.
func (l *ledger) verify(ctx context.Context, b bucket) error {
	sums := l.snapshot()
	c := b.sdk()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		group.Go(func() error {
			sum, err := readDigest(ctx, c, b.name, key)
			if err == nil && sum != sums[key] {
				err = errors.New("the content is not what was stored")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func readDigest(ctx context.Context, c *minio.Client, bucket, key string) (string, error) {
	object, err := c.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer func() { _ = object.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, object); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// load is a steady load: reads of given keys, and writes of new ones that go
// into a ledger.
type load struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu            sync.Mutex
	reads, writes int
	failures      []string
}

func startLoad(ctx context.Context, b bucket, prefix string, known map[string]string, l *ledger) *load {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	running := &load{cancel: cancel}
	c := b.sdk()
	keys := slices.Sorted(maps.Keys(known))
	loop := func(every time.Duration, op func(i int)) {
		running.done.Add(1)
		go func() {
			defer running.done.Done()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					op(i)
				}
			}
		}()
	}
	if len(keys) > 0 {
		loop(40*time.Millisecond, func(i int) {
			key := keys[i%len(keys)]
			sum, err := readDigest(ctx, c, b.name, key)
			if err == nil && sum != known[key] {
				err = errors.New("the content is not what was stored")
			}
			running.count(ctx, &running.reads, "read of "+key, err)
		})
	}
	loop(80*time.Millisecond, func(i int) {
		data := randomBytes(1 << (10 + i%7))
		key := fmt.Sprintf("%s/%06d", prefix, i)
		_, err := c.PutObject(ctx, b.name, key, bytes.NewReader(data), int64(len(data)), putOptions)
		if err == nil {
			l.record(key, digest(data))
		}
		running.count(ctx, &running.writes, "write of "+key, err)
	})
	DeferCleanup(func() {
		cancel()
		running.done.Wait()
	})
	return running
}

func (l *load) count(ctx context.Context, counter *int, what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		*counter++
	case ctx.Err() == nil:
		l.failures = append(l.failures, what+": "+err.Error())
	}
}

// stop ends the load and is met if nothing failed.
func (l *load) stop(what string) {
	GinkgoHelper()
	l.cancel()
	l.done.Wait()
	text := ""
	if len(l.failures) > 0 {
		text = fmt.Sprintf("; %d failed, the first: %s", len(l.failures), l.failures[0])
	}
	met(len(l.failures) == 0 && l.writes > 0, "no request failed %s: %d reads, %d writes%s", what, l.reads, l.writes, text)
}

var random = rand.New(rand.NewPCG(1, 2))
var randomLock sync.Mutex

func randomBytes(n int) []byte {
	randomLock.Lock()
	defer randomLock.Unlock()
	data := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		v := random.Uint64()
		for j := range 8 {
			data[i+j] = byte(v >> (8 * j))
		}
	}
	return data
}

// makeFiles writes count files of 1 KiB to 64 MiB below dir, most of them
// small, and returns their digests by name.
func makeFiles(dir string, count int) map[string]string {
	GinkgoHelper()
	sums := map[string]string{}
	for i := range count {
		size := 1 << (10 + i%9) // 1 KiB to 256 KiB
		switch {
		case i == 0:
			size = 64 << 20
		case i%50 == 1:
			size = 16 << 20
		case i%10 == 2:
			size = 1 << 20
		}
		data := randomBytes(size)
		name := fmt.Sprintf("files/%03d/object %d.bin", i%7, i)
		file := filepath.Join(dir, name)
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, data, 0o644)).To(Succeed())
		sums[name] = digest(data)
	}
	return sums
}

// fileDigests returns the digest of every file below dir, by relative name.
func fileDigests(dir string) map[string]string {
	GinkgoHelper()
	sums := map[string]string{}
	Expect(filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		sums[filepath.ToSlash(name)] = digest(data)
		return err
	})).To(Succeed())
	return sums
}
