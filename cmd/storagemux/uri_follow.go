package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/suaveplan/storagemux/internal/fallbackuri"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/http"
)

// follower resolves the candidates that lead somewhere without a cluster.
type follower struct {
	hosts   []string
	private bool

	mu   sync.Mutex
	open []io.Closer
}

func (f *follower) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.open {
		_ = one.Close()
	}
}

// Resolve implements fallbackuri.Resolver.
func (f *follower) Resolve(candidate string) (fallbackuri.Target, error) {
	switch scheme := uri.SchemeOf(candidate); scheme {
	case "https", "http":
		return f.web(candidate)
	case "file":
		at, err := uri.Locate(candidate)
		if err != nil || at.Name != "" || at.Key == "" {
			return fallbackuri.Target{}, refuseCandidate("%s must have the form file:///PATH", uri.Redact(candidate))
		}
		return fallbackuri.Target{Storage: localFile("/" + at.Key), MayBlock: true}, nil
	case uri.SchemeBackend, uri.SchemeMux, uri.SchemeS3:
		return fallbackuri.Target{}, refuseCandidate("%s names a resource, which storagemux serve and the operator know; here are none", uri.Redact(candidate))
	default:
		return fallbackuri.Target{}, refuseCandidate("the scheme %q is not one of https, http, file and fallback", scheme)
	}
}

func refuseCandidate(format string, args ...any) error {
	return storage.Errorf(storage.CodeFallbackInvalidURI, "Resolve", format, args...)
}

// web is an object of a web server, with what its URL holds besides.
func (f *follower) web(candidate string) (fallbackuri.Target, error) {
	u, err := url.Parse(candidate)
	if err != nil || u.Host == "" {
		return fallbackuri.Target{}, refuseCandidate("%s must be a URL with a host", uri.Redact(candidate))
	}
	guard := &http.Guard{Hosts: f.hosts, AllowPrivate: f.private}
	if len(guard.Hosts) == 0 {
		guard.Hosts = []string{u.Hostname()}
	}
	cfg := http.Config{
		URL: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}).String(), Flavor: http.Plain, Query: u.RawQuery, Guard: guard, MaxInFlight: 1,
	}
	if u.User != nil {
		cfg.Auth.Username = u.User.Username()
		cfg.Auth.Password, _ = u.User.Password()
	}
	s, err := http.New(cfg)
	if err != nil {
		return fallbackuri.Target{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, s)
	return fallbackuri.Target{Storage: s, Key: strings.TrimPrefix(u.Path, "/")}, nil
}

// localFile is a file that is read as it is.
type localFile string

func (p localFile) open(op string) (*os.File, storage.Info, error) {
	file, err := os.Open(string(p))
	if err == nil {
		var stat fs.FileInfo
		if stat, err = file.Stat(); err == nil && stat.Mode().IsRegular() {
			return file, storage.Info{Size: stat.Size(), ModTime: stat.ModTime()}, nil
		}
		_ = file.Close()
		if err == nil {
			return nil, storage.Info{}, storage.Errorf(storage.CodeKeyNotFound, op, "it is not a regular file")
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, storage.Info{}, storage.Errorf(storage.CodeKeyNotFound, op, "there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return nil, storage.Info{}, storage.Errorf(storage.CodeAccessDenied, op, "the file may not be read")
	}
	return nil, storage.Info{}, storage.Errorf(storage.CodeUnavailable, op, "opening the file").WithCause(err)
}

// GetStream implements storage.Storage.
func (p localFile) GetStream(_ context.Context, _ string, opts storage.GetOptions) (*storage.Object, error) {
	file, info, err := p.open("GetStream")
	if err != nil {
		return nil, err
	}
	obj := &storage.Object{Info: info, Length: info.Size}
	if err = opts.Conditions.CheckRead(info); err == nil && opts.Range != nil {
		obj.Offset, obj.Length, err = opts.Range.Resolve(info.Size)
	}
	if err == nil {
		_, err = file.Seek(obj.Offset, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	obj.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(file, obj.Length), file}
	return obj, nil
}

// Stat implements storage.Storage.
func (p localFile) Stat(_ context.Context, _ string, opts storage.StatOptions) (storage.Info, error) {
	file, info, err := p.open("Stat")
	if err != nil {
		return storage.Info{}, err
	}
	return info, errors.Join(opts.Conditions.CheckRead(info), file.Close())
}

// SetStream implements storage.Storage.
func (p localFile) SetStream(context.Context, string, storage.Body, storage.SetOptions) (storage.Info, error) {
	return storage.Info{}, p.readOnly("SetStream")
}

// SetPartial implements storage.Storage.
func (p localFile) SetPartial(context.Context, string, int64, storage.Body) (storage.Info, error) {
	return storage.Info{}, p.readOnly("SetPartial")
}

// Delete implements storage.Storage.
func (p localFile) Delete(context.Context, string) error { return p.readOnly("Delete") }

// List implements storage.Storage.
func (p localFile) List(context.Context, storage.ListOptions) (storage.ListPage, error) {
	return storage.ListPage{}, p.readOnly("List")
}

func (localFile) readOnly(op string) error {
	return storage.Errorf(storage.CodeUnsupported, op, "a file is only read here")
}

// Capabilities implements storage.Storage.
func (localFile) Capabilities() storage.Capabilities {
	return storage.Capabilities{Range: true, Identity: storage.IdentityWeak}
}
