package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// processors is the CPU time that each process of the benchmark has taken, by
// its name.
type processors map[string]time.Duration

// processorTimes reads that of this process, which holds the proxies, of what it
// has started, and so of the API server, etcd and the operator, if there is one.
func processorTimes(o *operator) processors {
	times := processors{}
	own := os.Getpid()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		name, parent, used, err := readStat(pid)
		switch {
		case err != nil:
		case pid == own:
			times["proxies"] = used
		case o != nil && pid == o.command.Process.Pid:
			times["operator"] = used
		case parent == own:
			times[name] = used
		}
	}
	return times
}

// since says how many cores each took on average.
func (p processors) since(before processors, took time.Duration) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		used := p[name] - before[name]
		if used < 0 {
			used = p[name] // another operator than before
		}
		list = append(list, fmt.Sprintf("%s %.2f", name, float64(used)/float64(took)))
	}
	return strings.Join(list, ", ")
}

// readStat returns the name of a process, its parent, and the CPU time that it
// has taken.
func readStat(pid int) (name string, parent int, used time.Duration, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, 0, err
	}
	// The name is in brackets and may hold brackets.
	text := string(data)
	opened, closed := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[closed+1:])
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return "", 0, 0, err
	}
	// The 12th and 13th are ticks of 10 ms.
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return "", 0, 0, err
		}
		used += time.Duration(ticks) * 10 * time.Millisecond
	}
	return text[opened+1 : closed], parent, used, nil
}
