// Command conformance runs the tests that stand for the scenarios of the
// engine's specification and the rules of the design of fallback URIs, and writes
// docs/conformance.md from what came out.
// With -mutants it shows instead that those tests can fail: it breaks the
// code in one small way after the other, in a copy, and expects the test
// named for each to notice. Run it from the root of the repository.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const output = "docs/conformance.md"

// part is one specification and what stands for it.
type part struct {
	title, of string
	// root is the folder of its package, and of those below that it has.
	root      string
	scenarios []scenario
	mutants   []mutant
}

var parts = []part{
	{"Conformance of the engine", "Each scenario of the engine's specification", "internal/muxengine", scenarios, mutants},
	{"Conformance of fallback URIs", "Each rule of the design of fallback URIs, by its sections", "internal/fallbackuri", fallbackRules, fallbackMutants},
}

func main() {
	runMutants := flag.Bool("mutants", false, "run the mutants instead of writing "+output)
	check := flag.Bool("check", false, "fail if "+output+" is not what would be written")
	only := flag.String("run", "", "only mutants whose test matches this regular expression")
	flag.Parse()
	var err error
	if *runMutants {
		err = tryMutants(regexp.MustCompile(*only))
	} else {
		err = document(*check)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// document runs the tests of the tables and writes, or checks, the document.
func document(check bool) error {
	text := []byte("<!-- Written by `go run ./hack/conformance` from the tests' output. Do not edit. -->\n")
	var failed []string
	rows := 0
	for _, p := range parts {
		results, err := p.runTests()
		if err != nil {
			return err
		}
		section, bad := p.render(results)
		text = append(append(text, '\n'), section...)
		failed = append(failed, bad...)
		rows += len(p.scenarios)
	}
	if check {
		old, err := os.ReadFile(output)
		if err != nil {
			return err
		}
		if !bytes.Equal(old, text) {
			return fmt.Errorf("%s is not up to date: run go run ./hack/conformance", output)
		}
	} else if err := os.WriteFile(output, text, 0o644); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d scenarios did not pass: %s", len(failed), strings.Join(failed, ", "))
	}
	fmt.Printf("%d scenarios passed\n", rows)
	return nil
}

// runTests returns the outcome of every test, by its full name.
func (p part) runTests() (map[string]string, error) {
	var top []string
	for _, r := range p.scenarios {
		name, _, _ := strings.Cut(r.test, "/")
		if !slices.Contains(top, name) {
			top = append(top, name)
		}
	}
	cmd := exec.Command("go", "test", "-count=1", "-json", "-run", "^("+strings.Join(top, "|")+")$", "./"+p.root+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	results := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Test != "" {
			switch event.Action {
			case "pass", "fail", "skip":
				results[event.Test] = event.Action
			}
		}
	}
	return results, nil
}

// render writes the part and names the scenarios that did not pass.
func (p part) render(results map[string]string) (text []byte, failed []string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", p.title)
	fmt.Fprintf(&b, "%s, the test in `%s` that stands for it, and what came of\n", p.of, p.root)
	b.WriteString("that test. `go run ./hack/conformance -mutants` shows that the tests can fail: it makes the changes listed at\n")
	b.WriteString("the end, one at a time and in a copy, and each must be noticed by the test beside it.\n")
	last := ""
	for _, r := range p.scenarios {
		if r.requirement != last {
			last = r.requirement
			fmt.Fprintf(&b, "\n## %s\n\n| scenario | test | result |\n|---|---|---|\n", last)
		}
		result := results[r.test]
		if result != "pass" {
			failed = append(failed, r.test)
		}
		if result == "" {
			result = "not run"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", r.scenario, r.test, result)
	}
	b.WriteString("\n## Mutants\n\n| requirement | file | change | noticed by |\n|---|---|---|---|\n")
	for _, m := range p.mutants {
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` |\n", m.requirement, m.file, m.change, m.test)
	}
	return b.Bytes(), failed
}

// tryMutants makes each change and expects its test to fail.
func tryMutants(only *regexp.Regexp) error {
	var survived []string
	tried := 0
	type located struct {
		mutant
		root string
	}
	var all []located
	for _, p := range parts {
		for _, m := range p.mutants {
			all = append(all, located{m, p.root})
		}
	}
	for _, m := range all {
		if !only.MatchString(m.test) {
			continue
		}
		tried++
		killed, why, err := m.try(m.root)
		switch {
		case err != nil:
			return fmt.Errorf("%s, %s: %w", m.file, m.change, err)
		case killed:
			fmt.Printf("killed    %-24s %s\n", m.file, m.change)
		default:
			fmt.Printf("SURVIVED  %-24s %s (%s)\n", m.file, m.change, why)
			survived = append(survived, m.change)
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("%d of %d mutants survived", len(survived), tried)
	}
	fmt.Printf("%d mutants killed\n", tried)
	return nil
}

// try runs the mutant's test over a copy of the folder root with the change in it.
func (m mutant) try(root string) (killed bool, why string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
		return false, "", err
	}
	source, err := os.ReadFile(filepath.Join(dir, m.file))
	if err != nil {
		return false, "", err
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		return false, "", fmt.Errorf("what is to be changed occurs %d times: %q", n, m.from)
	}
	mutated := filepath.Join(dir, m.file)
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.from, m.to, 1)), 0o644); err != nil {
		return false, "", err
	}
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return false, "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return false, "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return false, "", err
	}
	pattern := "^" + strings.ReplaceAll(m.test, "/", "$/^") + "$"
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-timeout=5m", "-overlay", overlayFile, "-run", pattern, "./"+filepath.Join(root, filepath.Dir(m.file)))
	cmd.Env = append(os.Environ(), "MUXENGINE_SOURCE="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return false, "", fmt.Errorf("there is no test %s", m.test)
	case err == nil:
		return false, "the test passed", nil
	case !errors.As(err, &exit):
		return false, "", err
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return false, "", fmt.Errorf("it does not compile:\n%s", out)
	}
	return true, "", nil
}
