// Command storagemux is the whole product in one binary: the operator that runs in a cluster, the proxy that serves one
// mux, and serve, which does both without a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
)

// commands lists the subcommands in the order in which the help text shows them. Each has a file of its own here,
// which only parses flags and calls the package that does the work.
var commands = []command{
	operatorCommand,
	proxyCommand,
	serveCommand,
	uriCommand,
	versionCommand,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; with the handler gone, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(dispatch(ctx, commands, os.Args[1:], stdio{out: os.Stdout, err: os.Stderr}))
}

// dispatch runs the subcommand that args name and returns the process's exit code: 0 for success, 2 when the user has to
// change the command line or the manifests, 1 for any other failure.
func dispatch(ctx context.Context, commands []command, args []string, std stdio) int {
	if len(args) == 0 {
		usage(std.err, commands)
		return exitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(args) == 0 {
			usage(std.out, commands)
			return exitOK
		}
		name, args = args[0], []string{"--help"}
	case "-version", "--version":
		name = versionCommand.name
	}
	for _, c := range commands {
		if c.name == name {
			return exitCode(c, c.run(ctx, std, args), std.err)
		}
	}
	fmt.Fprintf(std.err, "storagemux: there is no command %q; 'storagemux help' lists them\n", name)
	return exitUsage
}

// exitCode reports a command's error to the user and turns it into the process's exit code.
func exitCode(c command, err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	fmt.Fprintf(stderr, "storagemux %s: %v\n", c.name, err)
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return exitFailure
}

func usage(w io.Writer, commands []command) {
	fmt.Fprint(w, "StorageMux makes several object stores one S3 endpoint.\n\nUsage: storagemux COMMAND [flags]\n\nCommands:\n")
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range commands {
		fmt.Fprintf(table, "  %s\t%s\n", c.name, c.summary)
	}
	table.Flush()
	fmt.Fprint(w, "\n'storagemux COMMAND --help' shows a command's flags.\n")
}
