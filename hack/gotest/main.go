// Command gotest runs `go test -json` with the arguments it is given, shows a person what they want to see of it, and
// counts: Go tests and subtests, and the specs of Ginkgo suites, which go test itself takes for one test.
//
//	go run ./hack/gotest [-live] [-C FOLDER] ARGUMENTS OF GO TEST
//
// With -live the tests' whole output is shown as it comes; otherwise a line for each package, the output of what failed,
// and every 30 s of silence what is still running. Skipped tests are always listed with their reason. It closes with
// "N passed, N failed" and appends the numbers "passed failed skipped" to the file that TEST_COUNTS names, if set.
// It fails when a test failed, when a package did not build, and when no test ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const heartbeat = 30 * time.Second

func main() {
	args := os.Args[1:]
	live := len(args) > 0 && args[0] == "-live"
	if live {
		args = args[1:]
	}
	r := newReport(os.Stdout, live)
	runErr := runGoTest(args, r)
	counts := r.close()
	if runErr != nil && counts.failed == 0 {
		fmt.Printf("go test: %v\n", runErr)
		counts.failed++
	}
	fmt.Println(counts)
	if err := appendCounts(os.Getenv("TEST_COUNTS"), counts); err != nil {
		fmt.Printf("write the counts: %v\n", err)
		os.Exit(1)
	}
	if counts.passed == 0 || counts.failed > 0 {
		os.Exit(1)
	}
}

// runGoTest feeds every event of the run to r. The error says that go test failed, for whatever reason.
func runGoTest(args []string, r *report) error {
	words := []string{"test", "-json"}
	if len(args) > 1 && args[0] == "-C" { // which the go command wants first
		words, args = append([]string{"-C", args[1]}, words...), args[2:]
	}
	cmd := exec.Command("go", append(words, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		readLines(stdout, lines)
	}()
	silence := time.NewTicker(heartbeat)
	defer silence.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return cmd.Wait()
			}
			if r.line(line) {
				silence.Reset(heartbeat)
			}
		case <-silence.C:
			r.stillRunning()
		}
	}
}

func readLines(from io.Reader, lines chan<- string) {
	buffered := bufio.NewReader(from)
	for {
		line, err := buffered.ReadString('\n')
		if line != "" {
			lines <- line
		}
		if err != nil {
			return
		}
	}
}

// line takes one line of go test's output and says whether it showed something.
func (r *report) line(line string) bool {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(r.out, line)
		return true
	}
	return r.add(e)
}

func appendCounts(file string, c counts) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, c.passed, c.failed, c.skipped); err != nil {
		return err
	}
	return f.Close()
}
