package storagetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// RecordEnv names a folder in which a run with real servers leaves its results,
// one file for each store, for the table in the documentation.
const RecordEnv = "STORAGEMUX_STORES_RESULTS"

// recordedBody is the largest body of such a run.
const recordedBody = 100 << 20

// Result is one line of a file of results.
type Result struct {
	Check   string  `json:"check"`
	Outcome Outcome `json:"outcome"`
}

// Recorded returns opts for a store on a real server: in a run that RecordEnv
// asks for, bodies are large and results are written under the store's name,
// "s3 on versitygw"; in any other they are as they were.
func Recorded(t testing.TB, name string, opts Options) Options {
	t.Helper()
	dir := os.Getenv(RecordEnv)
	if dir == "" {
		return opts
	}
	file, err := os.Create(filepath.Join(dir, strings.NewReplacer(" ", "_", "/", "-").Replace(name)+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	opts.MaxBody = recordedBody
	opts.Results = func(check string, outcome Outcome) {
		mu.Lock()
		defer mu.Unlock()
		if err := json.NewEncoder(file).Encode(Result{check, outcome}); err != nil {
			t.Error(err)
		}
	}
	return opts
}
