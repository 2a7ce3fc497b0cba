package proxy

import (
	"fmt"
	"io"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/azure"
	"github.com/suaveplan/storagemux/internal/storage/bunny"
	"github.com/suaveplan/storagemux/internal/storage/file"
	"github.com/suaveplan/storagemux/internal/storage/http"
	"github.com/suaveplan/storagemux/internal/storage/memory"
	"github.com/suaveplan/storagemux/internal/storage/s3"
	"github.com/suaveplan/storagemux/internal/storage/scratch"
	"github.com/suaveplan/storagemux/internal/storage/swift"
)

// maker makes stores.
type maker struct {
	// scratch is for stores that must have a body whole before they send
	// it; nil is the system's folder for temporary files.
	scratch scratch.Space
}

// open makes the store of a backend.
func (m maker) open(b *muxconfig.Backend) (storage.Storage, error) {
	switch {
	case b.Memory != nil:
		return memory.New(b.Memory.SizeLimit), nil
	case b.File != nil:
		return file.New(file.Config{Path: b.File.Path})
	case b.HTTP != nil:
		return http.New(httpConfig(b))
	case b.S3 != nil:
		return s3.New(s3Config(b))
	case b.Bunny != nil:
		return bunny.New(bunny.Config{
			Zone: b.Bunny.Zone, Region: b.Bunny.Region, Endpoint: b.Bunny.Endpoint, AccessKey: b.Bunny.AccessKey.Reveal(),
			MaxInFlight: int(b.MaxInFlight), Scratch: m.scratch,
		})
	case b.Swift != nil:
		return swift.New(swiftConfig(b))
	case b.Azure != nil:
		return azure.New(azureConfig(b))
	default:
		return nil, fmt.Errorf("its type is unknown")
	}
}

func s3Config(b *muxconfig.Backend) s3.Config {
	config := s3.Config{
		Endpoint: b.S3.Endpoint, Region: b.S3.Region, Bucket: b.S3.Bucket, Prefix: b.S3.Prefix,
		AddressingStyle: s3.AddressingStyle(b.S3.AddressingStyle),
		CABundle:        []byte(b.S3.CABundle),
		MaxInFlight:     int(b.MaxInFlight),
	}
	switch b.S3.Auth.Type {
	case muxconfig.AuthAmbient:
		config.Auth.Type = s3.Ambient
	case muxconfig.AuthAnonymous:
		config.Auth.Type = s3.Anonymous
	default:
		config.Auth = s3.Auth{
			Type:            s3.Static,
			AccessKeyID:     b.S3.Auth.AccessKeyID,
			SecretAccessKey: b.S3.Auth.SecretAccessKey.Reveal(),
			SessionToken:    b.S3.Auth.SessionToken.Reveal(),
		}
	}
	return config
}

func httpConfig(b *muxconfig.Backend) http.Config {
	auth := http.Auth{
		Username: b.HTTP.Auth.Username, Password: b.HTTP.Auth.Password.Reveal(), Token: b.HTTP.Auth.Token.Reveal(),
		Headers: map[string]string{},
	}
	for name, value := range b.HTTP.Auth.Headers {
		auth.Headers[name] = value.Reveal()
	}
	var guard *http.Guard
	if g := b.HTTP.Guard; g != nil {
		guard = &http.Guard{Hosts: g.Hosts, AllowPrivate: g.AllowPrivate}
	}
	return http.Config{
		Guard: guard,
		URL:   b.HTTP.URL, Flavor: http.Flavor(b.HTTP.Flavor), Auth: auth,
		CABundle:    []byte(b.HTTP.CABundle),
		MaxInFlight: int(b.MaxInFlight),
	}
}

func swiftConfig(b *muxconfig.Backend) swift.Config {
	auth := b.Swift.Auth
	return swift.Config{
		AuthURL: b.Swift.AuthURL, Container: b.Swift.Container, Prefix: b.Swift.Prefix,
		Auth: swift.Auth{
			Username: auth.Username, Password: auth.Password.Reveal(), Project: auth.Project,
			UserDomain: auth.UserDomain, ProjectDomain: auth.ProjectDomain, Region: auth.Region,
		},
		CABundle:    []byte(b.Swift.CABundle),
		MaxInFlight: int(b.MaxInFlight),
	}
}

func azureConfig(b *muxconfig.Backend) azure.Config {
	config := azure.Config{
		Endpoint: b.Azure.Endpoint, Container: b.Azure.Container, Prefix: b.Azure.Prefix, MaxInFlight: int(b.MaxInFlight),
	}
	switch auth := b.Azure.Auth; {
	case auth.Type == muxconfig.AuthAmbient:
		config.Auth.Type = azure.Ambient
	case auth.Type == muxconfig.AuthAnonymous:
		config.Auth.Type = azure.Anonymous
	case auth.SASToken != "":
		config.Auth = azure.Auth{Type: azure.SAS, SASToken: auth.SASToken.Reveal()}
	default:
		config.Auth = azure.Auth{Type: azure.Key, Account: auth.Account, Key: auth.Key.Reveal()}
	}
	return config
}

// spoolScratch is the room of the spool for stores: bodies that may have to be
// sent again and those that must be had whole share one budget.
type spoolScratch struct{ spool *spool.Spool }

// Open implements scratch.Space.
func (s spoolScratch) Open(size int64) (scratch.Room, error) {
	room, err := s.spool.Open(size)
	if err != nil {
		return nil, err
	}
	return room, nil
}

// closeStore lets go of what a store keeps for requests to come, such as idle
// connections. Requests that run are not disturbed.
func closeStore(s storage.Storage) {
	if closer, ok := s.(io.Closer); ok {
		_ = closer.Close()
	}
}
