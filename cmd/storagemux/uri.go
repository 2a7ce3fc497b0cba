package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/fallbackuri"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/storage"
)

var uriCommand = command{
	name:    "uri",
	summary: "build, read and try fallback:// URIs",
	run:     runURI,
}

const uriUsage = `Usage: storagemux uri build URI...
       storagemux uri parse FALLBACK_URI
       storagemux uri get [flags] FALLBACK_URI
       storagemux uri stat [flags] FALLBACK_URI

build writes the fallback:// URI of complete URIs, in the order in which they
are to be tried. parse shows the candidates of one. get and stat read the
object that each candidate of it names: https, http and file are followed,
what names resources of a cluster is not.
`

func runURI(ctx context.Context, std stdio, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("one of build, parse, get and stat must follow; --help shows them")}
	}
	name, args := args[0], args[1:]
	switch name {
	case "-h", "-help", "--help":
		fmt.Fprint(std.out, uriUsage)
		return flag.ErrHelp
	case "build":
		return buildURI(std, args)
	case "parse":
		return parseURI(std, args)
	case "get":
		return getURI(ctx, std, args)
	case "stat":
		return statURI(ctx, std, args)
	}
	return usageError{fmt.Errorf("there is no uri command %q; there are build, parse, get and stat", name)}
}

func buildURI(std stdio, args []string) error {
	flags := newFlags("uri build")
	most := flags.Int("max-candidates", uri.DefaultMaxCandidates, "how many candidates the URI may have, 1 to 64")
	if err := parseArguments(flags, args, std, -1); err != nil {
		return err
	}
	u, err := uri.Build(flags.Args(), *most)
	if err != nil {
		return usageError{err}
	}
	fmt.Fprintln(std.out, u)
	return nil
}

func parseURI(std stdio, args []string) error {
	flags := newFlags("uri parse")
	most := flags.Int("max-candidates", uri.DefaultMaxCandidates, "how many candidates a URI may have, 1 to 64")
	if err := parseArguments(flags, args, std, 1); err != nil {
		return err
	}
	return showCandidates(std.out, flags.Arg(0), *most, 0)
}

// showCandidates writes a line for each candidate, those of a fallback URI in it
// further to the right.
func showCandidates(w io.Writer, text string, most, depth int) error {
	if depth == uri.MaxDepth {
		return usageError{fmt.Errorf("fallback URIs are nested more than %d deep", uri.MaxDepth)}
	}
	u, err := uri.Parse(text, most)
	if err != nil {
		return usageError{err}
	}
	for _, c := range u.Candidates() {
		if !uri.IsFallback(c) {
			fmt.Fprintf(w, "%s%s\n", strings.Repeat("  ", depth), c)
			continue
		}
		fmt.Fprintf(w, "%s%s://\n", strings.Repeat("  ", depth), uri.Scheme)
		if err := showCandidates(w, c, most, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func getURI(ctx context.Context, std stdio, args []string) error {
	plugin, text, done, err := openURI("uri get", std, args)
	if err != nil {
		return err
	}
	defer done()
	obj, err := plugin.GetStream(ctx, text, storage.GetOptions{})
	if err != nil {
		return badURI(err)
	}
	_, err = io.Copy(std.out, obj.Body)
	return errors.Join(err, obj.Body.Close())
}

func statURI(ctx context.Context, std stdio, args []string) error {
	plugin, text, done, err := openURI("uri stat", std, args)
	if err != nil {
		return err
	}
	defer done()
	info, err := plugin.Stat(ctx, text, storage.StatOptions{})
	if err != nil {
		return badURI(err)
	}
	fmt.Fprintf(std.out, "candidate: %s\nsize: %d\n", info.ServedBy, info.Size)
	for _, line := range []struct{ name, value string }{
		{"etag", info.ETag}, {"content-type", info.Headers.ContentType}, {"last-modified", modified(info.ModTime)},
	} {
		if line.value != "" {
			fmt.Fprintf(std.out, "%s: %s\n", line.name, line.value)
		}
	}
	return nil
}

func modified(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// openURI reads the command line of a command that follows a URI.
func openURI(name string, std stdio, args []string) (plugin *fallbackuri.Plugin, text string, done func(), err error) {
	flags := newFlags(name)
	var policy fallbackuri.Policy
	var hosts string
	follow := follower{}
	flags.StringVar((*string)(&policy.Walk), "walk", string(fallbackuri.WalkSequential), "sequential or parallel")
	flags.StringVar((*string)(&policy.ErrorClass), "error-class", string(fallbackuri.ErrorClassTransient), "which errors lead on: transient or any")
	flags.BoolVar(&policy.NotFoundIsFinal, "not-found-is-final", false, "do not look further for what a candidate does not hold")
	flags.IntVar(&policy.MaxCandidates, "max-candidates", uri.DefaultMaxCandidates, "how many candidates a URI may have, 1 to 64")
	flags.IntVar(&policy.MaxDepth, "max-depth", uri.DefaultMaxDepth, "how deep fallback URIs may be nested, 1 to 8")
	flags.DurationVar(&policy.Timeout, "timeout", 30*time.Second, "how long a candidate may take to begin its answer")
	flags.StringVar(&hosts, "allowed-hosts", "", "hosts that may be contacted, HOST or *.DOMAIN, separated by commas; without it, those of the candidates")
	flags.BoolVar(&follow.private, "allow-private-addresses", false, "contact private and link-local addresses too")
	if err := parseArguments(flags, args, std, 1); err != nil {
		return nil, "", nil, err
	}
	if hosts != "" {
		follow.hosts = strings.Split(hosts, ",")
	}
	plugin, err = fallbackuri.New(fallbackuri.Options{Name: "uri", Resolver: &follow, Policy: policy})
	if err != nil {
		return nil, "", nil, usageError{err}
	}
	return plugin, flags.Arg(0), follow.close, nil
}

// parseArguments is parseFlags for a command that takes count arguments, or, where
// that is -1, any number.
func parseArguments(flags *flag.FlagSet, args []string, std stdio, count int) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(std.out, uriUsage)
		printFlags(flags, std.out)
		return flag.ErrHelp
	case err != nil:
		return usageError{err}
	case count >= 0 && flags.NArg() != count:
		return usageError{fmt.Errorf("%s takes %d argument(s), after its flags, and got %d", flags.Name(), count, flags.NArg())}
	}
	return nil
}

// badURI tells a URI that is wrong from one that could not be followed.
func badURI(err error) error {
	switch storage.CodeOf(err) {
	case storage.CodeFallbackInvalidURI, storage.CodeFallbackNoCandidates, storage.CodeFallbackMaxDepthExceeded:
		return usageError{err}
	}
	return err
}
