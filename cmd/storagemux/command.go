package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// The process's exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// command is one subcommand. run returns when ctx ends or the work is done. An error with a method ExitCode() int
// chooses the process's exit code; any other error is exitFailure.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, std stdio, args []string) error
}

// stdio is where a command writes what the user asked for, and everything else.
type stdio struct {
	out io.Writer
	err io.Writer
}

// usageError is an error in the command line.
type usageError struct{ error }

func (usageError) ExitCode() int { return exitUsage }

func (e usageError) Unwrap() error { return e.error }

// newFlags returns the empty flag set of a command, to be filled and then given to parseFlags.
func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // dispatch reports errors, once and in one form
	flags.Usage = func() {}
	return flags
}

// parseFlags parses args, which may hold flags only. Asked for help, it prints the flags and returns flag.ErrHelp, which
// a command returns as it is.
func parseFlags(flags *flag.FlagSet, args []string, std stdio) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printFlags(flags, std.out)
		return flag.ErrHelp
	case err != nil:
		return usageError{err}
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	}
	return nil
}

func printFlags(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, "Usage: storagemux %s [flags]\n", flags.Name())
	some := false
	flags.VisitAll(func(*flag.Flag) { some = true })
	if !some {
		return
	}
	fmt.Fprint(w, "\nFlags:\n")
	flags.SetOutput(w)
	flags.PrintDefaults()
}
