package fallbackuri

import (
	"context"
	"errors"
	"io"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Plugin reads and writes what fallback URIs name: each candidate is one object,
// or, for List, a base. It keeps nothing between calls.
type Plugin struct{ opts Options }

// New returns a Plugin for opts, whose policy must be valid.
func New(opts Options) (*Plugin, error) {
	if _, err := opts.Policy.complete(); err != nil {
		return nil, err
	}
	return &Plugin{opts}, nil
}

// use opens text for the time of one call.
func (p *Plugin) use(text string, call func(*Ladder) error) error {
	l, err := newLadder(text, p.opts, false)
	if err != nil {
		return err
	}
	defer l.Close()
	return call(l)
}

// Get returns the whole object.
func (p *Plugin) Get(ctx context.Context, text string) (data []byte, info storage.Info, err error) {
	err = p.use(text, func(l *Ladder) error {
		data, info, err = storage.Get(ctx, l, "")
		return err
	})
	return data, info, err
}

// GetStream opens the object or a part of it. The caller closes its body.
func (p *Plugin) GetStream(ctx context.Context, text string, opts storage.GetOptions) (*storage.Object, error) {
	l, err := newLadder(text, p.opts, false)
	if err != nil {
		return nil, err
	}
	obj, err := l.GetStream(ctx, "", opts)
	if err != nil {
		l.Close()
		return nil, err
	}
	obj.Body = &openBody{obj.Body, l}
	return obj, nil
}

// openBody closes the ladder together with the body that comes from it.
type openBody struct {
	io.ReadCloser
	ladder *Ladder
}

func (b *openBody) Close() error {
	defer b.ladder.Close()
	return b.ReadCloser.Close()
}

// Stat describes the object.
func (p *Plugin) Stat(ctx context.Context, text string, opts storage.StatOptions) (info storage.Info, err error) {
	err = p.use(text, func(l *Ladder) error {
		info, err = l.Stat(ctx, "", opts)
		return err
	})
	return info, err
}

// Has reports whether a candidate holds the object. It is false only if none
// does and every one has answered.
func (p *Plugin) Has(ctx context.Context, text string) (found bool, err error) {
	err = p.use(text, func(l *Ladder) error {
		_, err := l.Stat(ctx, "", storage.StatOptions{})
		var f *Failure
		switch {
		case storage.CodeOf(err) == storage.CodeKeyNotFound:
			return nil
		case errors.As(err, &f) && allMissing(f.CandidateErrors):
			return nil
		}
		found = err == nil
		return err
	})
	return found, err
}

// Set stores data where the policy says.
func (p *Plugin) Set(ctx context.Context, text string, data []byte, opts storage.SetOptions) (storage.Info, error) {
	return p.SetStream(ctx, text, storage.Bytes(data), opts)
}

// SetStream stores body where the policy says.
func (p *Plugin) SetStream(ctx context.Context, text string, body storage.Body, opts storage.SetOptions) (info storage.Info, err error) {
	err = p.use(text, func(l *Ladder) error {
		info, err = l.SetStream(ctx, "", body, opts)
		return err
	})
	return info, err
}

// SetPartial overwrites a part of the object where the policy says.
func (p *Plugin) SetPartial(ctx context.Context, text string, offset int64, body storage.Body) (info storage.Info, err error) {
	err = p.use(text, func(l *Ladder) error {
		info, err = l.SetPartial(ctx, "", offset, body)
		return err
	})
	return info, err
}

// Delete removes the object from every candidate.
func (p *Plugin) Delete(ctx context.Context, text string) error {
	return p.use(text, func(l *Ladder) error { return l.Delete(ctx, "") })
}

// List returns what lies under the candidates, as ListAll does.
func (p *Plugin) List(ctx context.Context, text string, opts storage.ListOptions) (list Listing, err error) {
	err = p.use(text, func(l *Ladder) error {
		list, err = l.ListAll(ctx, opts)
		return err
	})
	return list, err
}
