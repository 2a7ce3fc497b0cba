package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func restConfig() *rest.Config {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(envKubeconfig))
	Expect(err).NotTo(HaveOccurred())
	return config
}

// firstLogged returns when a proxy of the mux first logged the topic after a
// moment. The proxies' clock and ours are the same on a cluster of one node.
func firstLogged(ctx context.Context, namespace, mux string, after time.Time, topic string) (time.Time, error) {
	out, err := run(ctx, nil, "kubectl", "-n", namespace, "logs", "-l", "storagemux.dev/mux="+mux, "--tail=-1", "--since=5m")
	if err != nil {
		return time.Time{}, err
	}
	var first time.Time
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Time  time.Time `json:"time"`
			Topic string    `json:"topic"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil || entry.Topic != topic || entry.Time.Before(after) {
			continue
		}
		if first.IsZero() || entry.Time.Before(first) {
			first = entry.Time
		}
	}
	if first.IsZero() {
		return first, fmt.Errorf("no proxy of %s logged %s", mux, topic)
	}
	return first, lines.Err()
}
