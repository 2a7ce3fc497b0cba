package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// requests counts what the API server was asked, by whoever, by verb and
// resource.
type requests map[string]int

var requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)

// serverRequests reads the API server's own count, without watches.
func (b *bench) serverRequests(ctx context.Context) (requests, error) {
	clients, err := kubernetes.NewForConfig(b.config)
	if err != nil {
		return nil, err
	}
	data, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	counted := requests{}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found := requestLine.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		label := map[string]string{}
		for _, pair := range strings.Split(found[1], ",") {
			name, value, _ := strings.Cut(pair, "=")
			label[name] = strings.Trim(value, `"`)
		}
		count, err := strconv.ParseFloat(found[2], 64)
		if err != nil || label["verb"] == "WATCH" {
			continue
		}
		name := label["verb"] + " " + label["resource"]
		if label["subresource"] != "" {
			name += "/" + label["subresource"]
		}
		if label["code"] != "200" && label["code"] != "201" {
			name += " " + label["code"]
		}
		counted[name] += int(count)
	}
	return counted, lines.Err()
}

// since lists what was asked since before, the most frequent first.
func (r requests) since(before requests) string {
	names := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return (r[b] - before[b]) - (r[a] - before[a])
	})
	var list []string
	for _, name := range names {
		if count := r[name] - before[name]; count > 2 {
			list = append(list, fmt.Sprintf("%d %s", count, name))
		}
	}
	return strings.Join(list, ", ")
}
