package proxy

import (
	"context"
	"fmt"
	"strings"

	"github.com/suaveplan/storagemux/internal/fallbackuri"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/staged"
)

// partsLadder is a ladder that takes uploads in parts. Parts lie on a ladder of
// those candidates that can be written to, so that a web server is not asked for
// them; objects are what the whole ladder makes of them.
type partsLadder struct {
	*fallbackuri.Ladder
	*staged.Uploads
	// parts is nil where refuses says why there are no uploads in parts.
	parts   *fallbackuri.Ladder
	refuses string
}

var (
	_ storage.Multipart = (*partsLadder)(nil)
	_ storage.Checker   = (*partsLadder)(nil)
)

func newPartsLadder(whole, parts *fallbackuri.Ladder, refuses string) *partsLadder {
	l := &partsLadder{Ladder: whole, parts: parts, refuses: refuses}
	l.Uploads = staged.New(l, l.takes)
	return l
}

// takes returns why no object of that key can be uploaded in parts.
func (l *partsLadder) takes(op, key string) error {
	if l.parts == nil {
		return storage.Errorf(storage.CodeUnsupported, op, "the fallback backend takes no uploads in parts: %s", l.refuses)
	}
	return l.ValidateKey(op, key)
}

// of returns the ladder that key lies on.
func (l *partsLadder) of(key string) *fallbackuri.Ladder {
	if l.parts != nil && strings.HasPrefix(key, storage.ReservedParts) {
		return l.parts
	}
	return l.Ladder
}

// Of an upload's many small steps each has the time of one, as whoever waits sees
// that the ones before are done.

// GetStream implements storage.Storage.
func (l *partsLadder) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	obj, err := l.of(key).GetStream(ctx, key, opts)
	storage.Progress(ctx)()
	return obj, err
}

// Stat implements storage.Storage.
func (l *partsLadder) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	info, err := l.of(key).Stat(ctx, key, opts)
	storage.Progress(ctx)()
	return info, err
}

// SetStream implements storage.Storage.
func (l *partsLadder) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	info, err := l.of(key).SetStream(ctx, key, body, opts)
	storage.Progress(ctx)()
	return info, err
}

// Delete implements storage.Storage.
func (l *partsLadder) Delete(ctx context.Context, key string) error {
	err := l.of(key).Delete(ctx, key)
	storage.Progress(ctx)()
	return err
}

// List implements storage.Storage.
func (l *partsLadder) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	page, err := l.of(opts.Prefix).List(ctx, opts)
	storage.Progress(ctx)()
	return page, err
}

// refusesParts says why a fallback backend takes no uploads in parts, where leaves
// are its candidates in the order of a walk. Empty: it takes them, since what a
// write goes to can keep parts, and list them.
func refusesParts(f *muxconfig.Fallback, leaves []string, writable func(string) bool) string {
	shown := func(text string) string {
		return fmt.Sprintf("the candidate %s cannot be written to", uri.Redact(text))
	}
	if f.WriteMode == string(fallbackuri.WriteAll) {
		for _, text := range leaves {
			if !writable(text) {
				return shown(text) + ", and every write goes to all candidates"
			}
		}
		return ""
	}
	for _, text := range leaves {
		if writable(text) {
			return ""
		}
		if f.ErrorClass != string(fallbackuri.ErrorClassAny) {
			return shown(text) + ", and a write goes no further than there"
		}
	}
	return "no candidate can be written to"
}

// writable reports whether a member can be written to, and lists what was written.
// It leans on the ladders below being made already.
func (m *ladderMaker) writable(member *muxconfig.Member) bool {
	doc := m.topologist.doc
	b := doc.Backend(member.Backend)
	if b != nil && b.Fallback != nil {
		below := m.made[b.UID]
		return below != nil && below.takesParts
	}
	if below := doc.Below(member); below != nil {
		for i := range below.Members {
			if !m.writable(&below.Members[i]) {
				return false
			}
		}
		return true
	}
	return b.HTTP == nil || b.HTTP.Flavor != muxconfig.FlavorPlain
}
