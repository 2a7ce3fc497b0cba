package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type codedError struct{ code int }

func (e codedError) Error() string { return "coded" }
func (e codedError) ExitCode() int { return e.code }

func testCommand(name string, err error) command {
	return command{name: name, summary: "does " + name, run: func(_ context.Context, std stdio, args []string) error {
		flags := newFlags(name)
		size := flags.Int("size", 1, "how large")
		if err := parseFlags(flags, args, std); err != nil {
			return err
		}
		fmt.Fprintf(std.out, "%s ran with size %d\n", name, *size)
		return err
	}}
}

func TestDispatchAnswersEachCommandLineWithItsExitCodeAndStream(t *testing.T) {
	commands := []command{
		testCommand("good", nil),
		testCommand("bad", errors.New("read config: no such file")),
		testCommand("invalid", fmt.Errorf("read manifests: %w", codedError{2})),
		versionCommand,
	}
	for name, test := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"no command":          {nil, 2, "", "Usage: storagemux COMMAND"},
		"help":                {[]string{"help"}, 0, "good      does good", ""},
		"help flag":           {[]string{"--help"}, 0, "Usage: storagemux COMMAND", ""},
		"help for a command":  {[]string{"help", "good"}, 0, "-size int", ""},
		"a command's help":    {[]string{"good", "-h"}, 0, "Usage: storagemux good [flags]", ""},
		"help without flags":  {[]string{"version", "--help"}, 0, "Usage: storagemux version [flags]", ""},
		"unknown command":     {[]string{"god"}, 2, "", `there is no command "god"`},
		"success":             {[]string{"good", "--size=3"}, 0, "good ran with size 3", ""},
		"unknown flag":        {[]string{"good", "--sise=3"}, 2, "", "storagemux good: flag provided but not defined: -sise"},
		"stray argument":      {[]string{"good", "now"}, 2, "", `storagemux good: unexpected argument "now"`},
		"failure":             {[]string{"bad"}, 1, "bad ran", "storagemux bad: read config: no such file"},
		"error with its code": {[]string{"invalid"}, 2, "", "storagemux invalid: read manifests: coded"},
		"version":             {[]string{"version"}, 0, "storagemux ", ""},
		"version flag":        {[]string{"--version"}, 0, "storagemux ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := dispatch(t.Context(), commands, test.args, stdio{out: &stdout, err: &stderr})
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stdout.String(), test.stdout) {
				t.Errorf("stdout %q lacks %q", stdout.String(), test.stdout)
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stderr %q lacks %q", stderr.String(), test.stderr)
			}
			if test.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr should be empty, is %q", stderr.String())
			}
		})
	}
}

func TestEveryCommandIsNamedOnceAndExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands {
		if seen[c.name] || c.summary == "" {
			t.Errorf("command %q is listed twice or has no summary", c.name)
		}
		seen[c.name] = true
	}
}
