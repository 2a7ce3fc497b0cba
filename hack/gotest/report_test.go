package main

import (
	"bytes"
	"strings"
	"testing"
)

// lines as `go test -json` writes them.
const (
	passing = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"pass","Package":"p","Elapsed":0.2}
`
	failing = `{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:7: got 1, want 2\n"}
{"Action":"fail","Package":"q","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"q","Test":"TestC","Elapsed":0}
{"Action":"fail","Package":"q","Elapsed":0.3}
`
	skipping = `{"Action":"output","Package":"s","Test":"TestS","Output":"=== RUN   TestS\n"}
{"Action":"output","Package":"s","Test":"TestS","Output":"    s_test.go:9: needs root\n"}
{"Action":"skip","Package":"s","Test":"TestS","Elapsed":0}
{"Action":"pass","Package":"s","Elapsed":0}
`
	unbuilt = `{"ImportPath":"u","Action":"build-output","Output":"u.go:3: undefined: x\n"}
{"ImportPath":"u","Action":"build-fail"}
{"Action":"start","Package":"u"}
{"Action":"fail","Package":"u","Elapsed":0,"FailedBuild":"u"}
`
	panicking = `{"Action":"run","Package":"x","Test":"TestX"}
{"Action":"output","Package":"x","Test":"TestX","Output":"panic: boom\n"}
{"Action":"fail","Package":"x","Elapsed":0.1}
`
	ginkgo = `{"Action":"output","Package":"g","Test":"TestSuite","Output":"\u001b[38;5;9mFAIL!\u001b[0m -- \u001b[38;5;10m12 Passed\u001b[0m | \u001b[38;5;9m1 Failed\u001b[0m | \u001b[38;5;11m1 Pending\u001b[0m | 2 Skipped\n"}
{"Action":"fail","Package":"g","Test":"TestSuite","Elapsed":3}
{"Action":"fail","Package":"g","Elapsed":3}
`
	empty = `{"Action":"output","Package":"e","Output":"?   \te\t[no test files]\n"}
{"Action":"skip","Package":"e","Elapsed":0}
`
	unfinished = `{"Action":"start","Package":"k"}
{"Action":"run","Package":"k","Test":"TestK"}
`
)

func TestReportCountsAndShowsWhatAPersonNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		events string
		want   counts
		shown  []string
		hidden string
	}{
		"passing":          {passing, counts{passed: 1}, []string{"ok      p: 1 passed, 0 failed (0.2 s)"}, "noise"},
		"failing":          {failing, counts{passed: 1, failed: 1}, []string{"FAILED q TestB\n    b_test.go:7: got 1, want 2", "FAILED  q: 1 passed, 1 failed"}, ""},
		"skipping":         {skipping, counts{skipped: 1}, []string{"skipped s TestS: needs root"}, "=== RUN"},
		"not building":     {unbuilt, counts{failed: 1}, []string{"u.go:3: undefined: x", "FAILED  u"}, ""},
		"panicking":        {panicking, counts{failed: 1}, []string{"panic: boom"}, ""},
		"ginkgo specs":     {ginkgo, counts{passed: 12, failed: 2, skipped: 3}, []string{"FAIL!"}, ""},
		"without tests":    {empty, counts{}, []string{"e: no tests"}, ""},
		"killed":           {unfinished, counts{failed: 1}, []string{"FAILED  k"}, ""},
		"text of go test":  {"go: no such tool\n", counts{}, []string{"go: no such tool"}, ""},
		"several packages": {passing + failing, counts{passed: 2, failed: 1}, []string{"ok      p", "FAILED  q"}, "noise"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := newReport(&out, false)
			for line := range strings.Lines(test.events) {
				r.line(line)
			}
			if got := r.close(); got != test.want {
				t.Errorf("counted %v, want %v", got, test.want)
			}
			for _, want := range test.shown {
				if !strings.Contains(out.String(), want) {
					t.Errorf("does not show %q in:\n%s", want, out.String())
				}
			}
			if test.hidden != "" && strings.Contains(out.String(), test.hidden) {
				t.Errorf("shows %q in:\n%s", test.hidden, out.String())
			}
		})
	}
}

func TestLiveReportShowsOutputOnceAndAsItComes(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out, true)
	for line := range strings.Lines(failing) {
		r.line(line)
	}
	if n := strings.Count(out.String(), "got 1, want 2"); n != 1 {
		t.Errorf("shown %d times, want once:\n%s", n, out.String())
	}
}
