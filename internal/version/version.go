package version

import "runtime/debug"

// version is set with `go build -ldflags "-X ..."` by the Makefile and the image builds; it is empty otherwise.
var version string

// String returns the version in the form of `git describe`, such as v0.1.0 or v0.1.0-3-gfa8ba38. In a binary that was
// built without stamping it is what the Go tool recorded: a module version, or the revision of the work tree. It is
// never empty.
func String() string {
	info, _ := debug.ReadBuildInfo()
	return choose(version, info)
}

// choose prefers what was stamped, then the main module's version, then its revision.
func choose(stamped string, info *debug.BuildInfo) string {
	if stamped != "" {
		return stamped
	}
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision == "" {
		return "unknown"
	}
	if settings["vcs.modified"] == "true" {
		revision += "-dirty"
	}
	return revision
}
