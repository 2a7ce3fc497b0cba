package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func run(arguments []string) error {
	var args, env, labels, files, dirs list
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	binary := flags.String("binary", "", "the static executable; it becomes /BASENAME and the entrypoint")
	platform := flags.String("platform", "linux/amd64", "the `os/architecture` that the binary was built for")
	user := flags.String("user", "65532:65532", "the numeric `uid:gid` that the image runs as")
	tag := flags.String("name", "", "the `reference` that the tarball holds, with a tag")
	output := flags.String("output", "", "write a tarball to this `file`")
	push := flags.String("push", "", "push to this `reference`, with the credentials of docker's or podman's login")
	flags.Var(&args, "arg", "a default argument of the entrypoint (repeatable)")
	flags.Var(&env, "env", "a variable, `NAME=VALUE` (repeatable)")
	flags.Var(&labels, "label", "an image label, `key=value` (repeatable)")
	flags.Var(&files, "file", "one more file, `source:/path/in/image` (repeatable)")
	flags.Var(&dirs, "dir", "an empty folder that the image's user owns, `/path/in/image` (repeatable)")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *output == "" && *push == "" {
		return errors.New("give --output, --push or both")
	}

	image, err := build(recipe{
		binary: *binary, platform: *platform, user: *user,
		args: args, env: env, labels: labels, files: files, dirs: dirs,
	})
	if err != nil {
		return err
	}
	if *output != "" {
		if err := write(image, *tag, *output); err != nil {
			return err
		}
	}
	if *push != "" {
		return upload(image, *push)
	}
	return nil
}

func write(image v1.Image, tag, output string) error {
	reference, err := tagged(tag)
	if err != nil {
		return fmt.Errorf("parse --name: %w", err)
	}
	// Moved into place in one step, so that whoever finds the file finds all of it.
	part := output + ".part"
	if err := tarball.WriteToFile(part, reference, image); err != nil {
		return fmt.Errorf("write tarball %s: %w", part, err)
	}
	return os.Rename(part, output)
}

func upload(image v1.Image, target string) error {
	reference, err := tagged(target)
	if err != nil {
		return fmt.Errorf("parse --push: %w", err)
	}
	if err := remote.Write(reference, image, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", target, err)
	}
	return nil
}

// tagged parses a reference whose tag is there to read: a tag that is only implied means "latest", which clusters pull anew.
func tagged(text string) (name.Tag, error) {
	reference, err := name.NewTag(text, name.WithDefaultTag(""))
	if err == nil && reference.TagStr() == "" {
		err = fmt.Errorf("%q has no tag", text)
	}
	return reference, err
}
