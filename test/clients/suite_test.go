package clients

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The environment in which hack/clients/run.sh runs TestRcloneSuite.
const (
	envSuite       = "STORAGEMUX_RCLONE_SUITE"         // the tests of rclone's s3 backend, built
	envSuiteFolder = "STORAGEMUX_RCLONE_SUITE_FOLDER"  // the folder of their source
	envSuiteNumber = "STORAGEMUX_RCLONE_SUITE_VERSION" // rclone's version
)

const suiteDocument = "../../docs/rclone-suite.md"

// explanations say of each test that does not pass through a mux why that is
// so. One for a test holds for its sub-tests too.
var explanations = map[string]string{
	"TestIntegration/FsMkdir/FsEncoding/control_chars": noControls,
	"TestIntegration/FsMkdir/FsEncoding/leading_VT":    noControls,
	"TestIntegration/FsMkdir/FsEncoding/trailing_VT":   noControls,
	"TestIntegration/FsMkdir/FsPutFiles/Internal/ObjectLock": "it makes a second bucket with object lock, and a mux has one bucket and no object lock: " +
		"CreateBucket of another bucket is refused, and rclone then skips what follows",
}

const noControls = "the key holds a control character, which XML 1.0 has no way to write: versitygw lists it with U+FFFD in its place, " +
	"with encoding-type=url too, so that neither rclone nor a mux before it can know the key"

// TestRcloneSuite runs the test suite of rclone's s3 backend in the bucket of a
// failover mux over two stores, and in a bucket of such a store itself: what the
// store passes the mux must pass, and what it does not is explained.
func TestRcloneSuite(t *testing.T) {
	store := startStore(t)
	direct := runSuite(t, "store", store, "store", "store-secret")
	mux := startMux(t, "rclone-suite", "failover", "replicated", "{name: one}, {name: two}")
	through := runSuite(t, "mux", mux.url, accessKey, secretKey)
	if problems := judge(direct.outcomes, through.outcomes, explanations); len(problems) > 0 {
		t.Fatalf("%s\n\nthrough the mux:\n%s", strings.Join(problems, "\n"), through.failures())
	}
	compareFile(t, suiteDocument, suiteText(direct.outcomes, through.outcomes, explanations), func(b []byte) []byte { return b })
}

// outcome is PASS, FAIL or SKIP.
type outcome string

const (
	passed  outcome = "PASS"
	failed  outcome = "FAIL"
	skipped outcome = "SKIP"
)

// suiteRun is what came out of one run of the suite, by the tests' names.
type suiteRun struct {
	outcomes map[string]outcome
	log      []byte
}

// runSuite runs the suite as it is: rclone's defaults for a store of no known
// provider. One look at a list is enough, for the stores are consistent.
func runSuite(t *testing.T, remote, url, key, secret string) suiteRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, required(t, envSuite),
		"-test.v", "-test.run", "TestIntegration$", "-list-retries", "1", "-remote", remote+":"+bucket)
	cmd.Dir = required(t, envSuiteFolder)
	cmd.Env = append(plainEnviron(), "RCLONE_CONFIG="+filepath.Join(t.TempDir(), "rclone.conf"))
	for name, value := range map[string]string{
		"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": url, "REGION": region, "FORCE_PATH_STYLE": "true", "ACCESS_KEY_ID": key, "SECRET_ACCESS_KEY": secret,
	} {
		cmd.Env = append(cmd.Env, "RCLONE_CONFIG_"+strings.ToUpper(remote)+"_"+name+"="+value)
	}
	cmd.WaitDelay = 5 * time.Second
	log, err := cmd.CombinedOutput() // its failures are judged one by one
	outcomes := outcomesOf(log)
	if len(outcomes) == 0 || outcomes["TestIntegration"] == "" {
		t.Fatalf("the suite came to no end at %s: %v\n%s", url, err, log[max(0, len(log)-4000):])
	}
	return suiteRun{outcomes: outcomes, log: log}
}

var outcomeLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)

func outcomesOf(log []byte) map[string]outcome {
	outcomes := map[string]outcome{}
	for _, match := range outcomeLine.FindAllSubmatch(log, -1) {
		outcomes[string(match[2])] = outcome(match[1])
	}
	return outcomes
}

// failures returns the end of what the suite printed before its summary.
func (r suiteRun) failures() []byte {
	log := r.log
	if at := bytes.LastIndex(log, []byte("=== RUN")); at >= 0 {
		log = log[:at]
	}
	return log[max(0, len(log)-8000):]
}

// leaves are the names without sub-tests, sorted: of the others nothing is known
// beyond what their sub-tests say.
func leaves(outcomes map[string]outcome) []string {
	parents := map[string]bool{}
	for name := range outcomes {
		for at := strings.LastIndex(name, "/"); at > 0; at = strings.LastIndex(name[:at], "/") {
			parents[name[:at]] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(outcomes)), func(name string) bool { return parents[name] })
}

// explained returns the test that is explained, name or one that name is a part of.
func explained(name string, why map[string]string) (string, bool) {
	for {
		if _, ok := why[name]; ok {
			return name, true
		}
		at := strings.LastIndex(name, "/")
		if at < 0 {
			return "", false
		}
		name = name[:at]
	}
}

// judge returns what is wrong: a test that the store passes and the mux does
// not, one that fails at the mux, and an explanation that explains nothing.
func judge(direct, through map[string]outcome, why map[string]string) []string {
	var problems []string
	used := map[string]bool{}
	all := maps.Clone(direct)
	maps.Copy(all, through)
	for _, name := range leaves(all) {
		if through[name] == passed || through[name] != failed && direct[name] != passed {
			continue
		}
		owner, ok := explained(name, why)
		switch {
		case !ok && direct[name] == passed:
			problems = append(problems, fmt.Sprintf("%s: the store passes it, the mux does not (%s)", name, said(through[name])))
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: it fails, and nothing explains why", name))
		case direct[name] == passed && through[name] == failed:
			problems = append(problems, fmt.Sprintf("%s: the store passes it and the mux fails it; no explanation excuses that", name))
		}
		used[owner] = true
	}
	for _, name := range slices.Sorted(maps.Keys(why)) {
		if !used[name] {
			problems = append(problems, fmt.Sprintf("%s: it is explained and passes: remove the explanation", name))
		}
	}
	return problems
}

func said(o outcome) string {
	switch o {
	case passed:
		return "passed"
	case failed:
		return "failed"
	case skipped:
		return "skipped"
	}
	return "not run"
}

func suiteText(direct, through map[string]outcome, why map[string]string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# rclone's own s3 suite\n\nThe tests that rclone %s has for its s3 backend, run with rclone's defaults for a store of no known provider: in a bucket of\n"+
		"versitygw itself, and in the bucket of a failover mux over two such stores. `make test-clients` runs it and fails when the mux fails\n"+
		"what versitygw passes, or when a failure is not explained here; `make test-clients CLIENTFLAGS=-update` writes this page.\n\n"+
		"| | versitygw | the mux |\n|---|---|---|\n", os.Getenv(envSuiteNumber))
	counts := func(outcomes map[string]outcome) map[outcome]int {
		n := map[outcome]int{}
		for _, name := range leaves(outcomes) {
			n[outcomes[name]]++
		}
		return n
	}
	d, m := counts(direct), counts(through)
	for _, o := range []outcome{passed, failed, skipped} {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", said(o), d[o], m[o])
	}
	b.WriteString("\nTests with sub-tests are not counted. rclone skips what such a remote has no way to do, whatever the store.\n\n" +
		"| not passed through the mux | versitygw | the mux | why |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimPrefix(name, "TestIntegration/"), said(direct[name]), said(through[name]), why[name])
	}
	return b.Bytes()
}

func TestJudgeWantsOfTheMuxWhatTheStorePasses(t *testing.T) {
	why := map[string]string{"T/known": "for a reason"}
	for _, test := range []struct {
		name            string
		direct, through map[string]outcome
		problems        int
	}{
		{"both pass, and what is known fails", map[string]outcome{"T": failed, "T/a": passed, "T/known": failed}, map[string]outcome{"T": failed, "T/a": passed, "T/known": failed}, 0},
		{"one that the store passes fails", map[string]outcome{"T/a": passed, "T/known": failed}, map[string]outcome{"T/a": failed, "T/known": failed}, 1},
		{"one that the store passes is not run", map[string]outcome{"T/a": passed, "T/known": failed}, map[string]outcome{"T/known": failed}, 1},
		{"both fail, unexplained", map[string]outcome{"T/a": failed, "T/known": failed}, map[string]outcome{"T/a": failed, "T/known": failed}, 1},
		{"an explanation for what passes", map[string]outcome{"T/known": failed}, map[string]outcome{"T/known": passed}, 1},
		{"an explanation is no excuse for the mux alone", map[string]outcome{"T/known": passed}, map[string]outcome{"T/known": failed}, 1},
		{"sub-tests of what the mux skips, explained", map[string]outcome{"T/known": passed, "T/known/x": passed}, map[string]outcome{"T/known": skipped}, 0},
		{"both skip", map[string]outcome{"T/a": skipped, "T/known": failed}, map[string]outcome{"T/a": skipped, "T/known": failed}, 0},
		{"the mux passes more", map[string]outcome{"T/a": failed, "T/known": failed}, map[string]outcome{"T/a": passed, "T/known": failed}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if problems := judge(test.direct, test.through, why); len(problems) != test.problems {
				t.Errorf("%d problems, want %d: %q", len(problems), test.problems, problems)
			}
		})
	}
}
