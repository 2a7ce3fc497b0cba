package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type operatorFiles struct{ binary, kubeconfig, log string }

// pprofAddress is where the operator serves profiles.
const pprofAddress = "127.0.0.1:6067"

// operator is one run of the operator's process.
type operator struct {
	command *exec.Cmd
	metrics string
	log     *os.File
}

// startOperator returns once it serves metrics.
func startOperator(ctx context.Context, files operatorFiles) (*operator, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(files.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	o := &operator{metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", port), log: log}
	o.command = exec.Command(files.binary, "operator", "--kubeconfig", files.kubeconfig, "--namespace", "default",
		"--proxy-image", "localhost/storagemux:scale", "--metrics-secure=false",
		"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", port),
		"--pprof-bind-address", pprofAddress,
		"--kube-api-qps", "500", "--kube-api-burst", "1000", "--max-concurrent-reconciles", "16")
	o.command.Stdout, o.command.Stderr = log, log
	if err := o.command.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	for range 600 {
		if _, err := o.writes(); err == nil {
			return o, nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			break
		}
	}
	o.stop()
	return nil, fmt.Errorf("the operator serves no metrics, see %s", files.log)
}

func (o *operator) stop() {
	_ = o.command.Process.Signal(syscall.SIGTERM)
	_ = o.command.Wait()
	_ = o.log.Close()
}

// writes returns how many requests that change something the operator has sent.
func (o *operator) writes() (int, error) {
	response, err := http.Get(o.metrics)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	sum := 0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "rest_client_requests_total{") || strings.Contains(line, `method="GET"`) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("read %q: %w", line, err)
		}
		sum += int(value)
	}
	return sum, lines.Err()
}

// usage is what the operator takes of the machine.
type usage struct {
	resident, peak float64 // MiB
	cpu            time.Duration
}

func (o *operator) usage() (usage, error) {
	var u usage
	pid := o.command.Process.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			u.resident = kib / 1024
		case "VmHWM:":
			u.peak = kib / 1024
		}
	}
	_, _, u.cpu, err = readStat(pid)
	return u, err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
