package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// profileFor is how much of a phase is profiled at most.
const profileFor = 10 * time.Second

// profile begins to profile a phase, and returns how to end that. What cannot be
// profiled is said, and is no error.
func (b *bench) profile(ctx context.Context, phase string) func() {
	if b.profiles == "" {
		return func() {}
	}
	path := func(process string) string {
		return filepath.Join(b.profiles, strings.ReplaceAll(phase, " ", "-")+"."+process+".pprof")
	}
	own, err := os.Create(path("proxies"))
	if err == nil {
		err = pprof.StartCPUProfile(own)
	}
	if err != nil {
		fmt.Println("profile of the proxies:", err)
		return func() {}
	}
	var asked sync.WaitGroup
	ask := func(process, address string, client *http.Client) {
		asked.Go(func() {
			if err := fetch(ctx, client, address, path(process)); err != nil {
				fmt.Printf("profile of the %s: %v\n", process, err)
			}
		})
	}
	query := fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", profileFor.Seconds())
	if b.operator != nil {
		ask("operator", "http://"+pprofAddress+query, http.DefaultClient)
	}
	if client, err := rest.HTTPClientFor(b.config); err == nil {
		ask("apiserver", strings.TrimSuffix(b.config.Host, "/")+query, client)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = own.Close()
		asked.Wait()
	}
}

func fetch(ctx context.Context, client *http.Client, address, into string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", response.Status)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(into, data, 0o644)
}
