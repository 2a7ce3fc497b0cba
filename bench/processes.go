package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that runs until it is stopped.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	log   *os.File
}

// plainEnviron is this process's environment without settings that are meant for
// other S3 clients of the machine.
func plainEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "AWS_") || strings.HasPrefix(entry, "RCLONE_")
	})
}

// start starts a program and waits until it listens at address.
func (b *bench) start(address, name string, env []string, program string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(b.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(plainEnviron(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, ended: make(chan struct{}), log: log}
	go func() {
		_ = cmd.Wait() // it is told to end
		close(p.ended)
	}()
	b.processes = append(b.processes, p)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.ended:
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("%s ended: %s", name, bytes.TrimSpace(text))
		default:
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s does not listen at %s after 30 s", name, address)
		}
	}
}

// stop ends the process and what it started.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.ended
	}
	_ = p.log.Close()
}

// pids are the process and its children, which share its group.
func (p *process) pids() []int {
	group := p.cmd.Process.Pid
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if id, err := syscall.Getpgid(pid); err == nil && id == group {
			pids = append(pids, pid)
		}
	}
	return pids
}

// cpu is the time that the processor spent on the processes, user and system.
func cpu(list []*process) (time.Duration, error) {
	const ticks = 100 // of USER_HZ, which is 100 on Linux
	var sum time.Duration
	for _, p := range list {
		for _, pid := range p.pids() {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				return 0, err
			}
			fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
			user, err1 := strconv.ParseInt(fields[11], 10, 64)
			system, err2 := strconv.ParseInt(fields[12], 10, 64)
			if err := errors.Join(err1, err2); err != nil {
				return 0, err
			}
			sum += time.Duration(user+system) * time.Second / ticks
		}
	}
	return sum, nil
}

// peakMemory is the most memory that the processes ever had resident, in bytes;
// resetPeak forgets what was before.
func peakMemory(list []*process) (int64, error) {
	var sum int64
	for _, p := range list {
		for _, pid := range p.pids() {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if err != nil {
				return 0, err
			}
			for line := range strings.Lines(string(data)) {
				if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
					kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
					if err != nil {
						return 0, err
					}
					sum += kib << 10
				}
			}
		}
	}
	return sum, nil
}

func resetPeak(list []*process) {
	for _, p := range list {
		for _, pid := range p.pids() {
			// Where this is not allowed the peak is that of the whole run.
			_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
