package version

import (
	"runtime/debug"
	"testing"
)

func TestVersionFallsBackToWhatTheGoToolRecorded(t *testing.T) {
	withSettings := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "fa8ba38"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}

	for name, test := range map[string]struct {
		stamped string
		info    *debug.BuildInfo
		want    string
	}{
		"stamped wins":            {"v1.2.3", withSettings("v9.9.9", revision), "v1.2.3"},
		"module version":          {"", withSettings("v0.4.0", revision), "v0.4.0"},
		"revision of a clean one": {"", withSettings("(devel)", revision), "fa8ba38"},
		"revision of an edited":   {"", withSettings("", revision, modified), "fa8ba38-dirty"},
		"nothing recorded":        {"", withSettings("(devel)"), "unknown"},
		"no build information":    {"", nil, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := choose(test.stamped, test.info); got != test.want {
				t.Errorf("choose() = %q, want %q", got, test.want)
			}
		})
	}
}
