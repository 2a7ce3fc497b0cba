package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine describes what the benchmark runs on, as far as Linux tells.
func machine() string {
	text := fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		text += " of " + model
	}
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		text += ", " + memory + " of memory"
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += ", load before the run " + strings.Join(strings.Fields(string(load))[:3], " ")
	}
	return text
}

// field returns the first value of that name in a file of "name: value" lines.
func field(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
