package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile starts a processor profile of a mux that lasts as long as the load,
// and returns where its error comes when it is written. The profile of a later
// round takes the place of the one before.
func (b *bench) profile(p *path, name string, during time.Duration) <-chan error {
	done := make(chan error, 1)
	if b.profiles == "" || p.admin == "" {
		close(done)
		return done
	}
	go func() {
		done <- fetchProfile(p.admin, filepath.Join(b.profiles, strings.ReplaceAll(name, "/", "-")+".pprof"), during)
	}()
	return done
}

func fetchProfile(admin, file string, during time.Duration) error {
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", admin, max(1, int(during.Seconds()))))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("profile of %s: status %d", admin, response.StatusCode)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, response.Body); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
