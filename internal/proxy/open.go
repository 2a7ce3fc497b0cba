package proxy

import (
	"fmt"
	"io"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/file"
	"github.com/suaveplan/storagemux/internal/storage/http"
	"github.com/suaveplan/storagemux/internal/storage/memory"
	"github.com/suaveplan/storagemux/internal/storage/s3"
)

// openStore makes the store of a backend.
func openStore(b *muxconfig.Backend) (storage.Storage, error) {
	switch {
	case b.Memory != nil:
		return memory.New(b.Memory.SizeLimit), nil
	case b.File != nil:
		return file.New(file.Config{Path: b.File.Path})
	case b.HTTP != nil:
		return http.New(httpConfig(b))
	case b.S3 != nil:
		return s3.New(s3Config(b))
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
	return http.Config{
		URL: b.HTTP.URL, Flavor: http.Flavor(b.HTTP.Flavor), Auth: auth,
		CABundle:    []byte(b.HTTP.CABundle),
		MaxInFlight: int(b.MaxInFlight),
	}
}

// closeStore lets go of what a store keeps for requests to come, such as idle
// connections. Requests that run are not disturbed.
func closeStore(s storage.Storage) {
	if closer, ok := s.(io.Closer); ok {
		_ = closer.Close()
	}
}
