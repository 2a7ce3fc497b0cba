package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy"
	"github.com/suaveplan/storagemux/internal/render"
)

// pollInterval is how often the manifests are looked at. They are read rather
// than watched: editors, Git and mounted volumes replace files and folders in
// ways that watches lose. A change counts once two looks in a row saw it, so
// that a file that is half written is left alone.
const pollInterval = 500 * time.Millisecond

// source implements proxy.Source over manifests on disk.
type source struct {
	path, mux string
	material  render.Material
	log       *slog.Logger

	key       types.NamespacedName
	resources *resources
	document  *muxconfig.Document
	digest    [sha256.Size]byte
}

// newSource reads the manifests once. Its error is a Problem where the user
// can mend it.
func newSource(path, mux string, log *slog.Logger) (*source, error) {
	s := &source{path: path, mux: mux, log: log}
	admin, err := muxconfig.NewAdmin(time.Now())
	if err != nil {
		return nil, err
	}
	s.material = render.Material{Admin: admin, Keys: muxconfig.Keys{Current: muxconfig.NewSealingKey()}}
	files, err := readFiles(path)
	if err != nil {
		return nil, err
	}
	if err := s.load(files); err != nil {
		return nil, err
	}
	s.digest = digest(files)
	return s, nil
}

// load renders the files. On error nothing has changed.
func (s *source) load(files []file) error {
	resources, err := load(files, s.resources)
	if err != nil {
		return err
	}
	key, err := resources.choose(s.mux, s.path)
	if err != nil {
		return err
	}
	revision := int64(0)
	if s.document != nil {
		revision = s.document.Revision
	}
	document, err := resources.document(key, s.material, revision, time.Now())
	if err != nil {
		return err
	}
	s.key, s.resources, s.document = key, resources, document
	return nil
}

// Run implements proxy.Source. While what is on disk is invalid, the last good
// document stays.
func (s *source) Run(ctx context.Context, take func(context.Context, proxy.Offer) bool) error {
	if taken, err := s.offer(ctx, take); err != nil || !taken {
		return errors.Join(err, errors.New("the proxy refused the manifests; the log says why"))
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	seen := s.digest
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		files, err := readFiles(s.path)
		now := digest(files)
		if err != nil {
			// Digests of errors make each be logged once.
			now = sha256.Sum256([]byte(err.Error()))
		}
		settled := now == seen
		seen = now
		if !settled || now == s.digest {
			continue
		}
		s.digest = now
		s.reload(ctx, files, err, take)
	}
}

func (s *source) reload(ctx context.Context, files []file, err error, take func(context.Context, proxy.Offer) bool) {
	before := s.document
	if err == nil {
		err = s.load(files)
	}
	if err != nil {
		s.log.Error("the manifests are invalid; what was served before goes on", "error", err.Error())
		return
	}
	if s.document.Hash == before.Hash {
		s.document = before
		return
	}
	if _, err := s.offer(ctx, take); err != nil {
		s.log.Error("the manifests cannot be served; what was served before goes on", "error", err.Error())
	}
}

func (s *source) offer(ctx context.Context, take func(context.Context, proxy.Offer) bool) (taken bool, err error) {
	data, err := muxconfig.Encode(s.document)
	if err != nil {
		return false, fmt.Errorf("encode the document: %w", err)
	}
	return take(ctx, proxy.Offer{Data: data}), nil
}

func digest(files []file) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %d\n", len(f.name), f.name, len(f.data))
		h.Write(f.data)
	}
	h.Sum(sum[:0])
	return sum
}
