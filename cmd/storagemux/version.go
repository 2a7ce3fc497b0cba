package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/suaveplan/storagemux/internal/version"
)

var versionCommand = command{
	name:    "version",
	summary: "print the version of this binary",
	run: func(_ context.Context, std stdio, args []string) error {
		if err := parseFlags(newFlags("version"), args, std); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.out, "storagemux %s %s %s/%s\n",
			version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	},
}
