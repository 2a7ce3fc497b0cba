package fallbackuri

import (
	"context"
	"slices"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
)

// frame is one step of the way that a call has come: the candidate by which it
// came, and what is before it. It travels in the context and never changes.
type frame struct {
	before *frame
	// canonical is what the step is recognised by, shown what may be told.
	canonical, shown string
	// depth is how many fallback URIs lie around the one that is walked, limit
	// how many may, as the outermost one says.
	depth, limit int
}

type frameKey struct{}

// enter returns the frame of the call of ctx at l: that of the candidate by which
// it came, or the first one.
func (l *Ladder) enter(ctx context.Context) *frame {
	if f, ok := ctx.Value(frameKey{}).(*frame); ok {
		return f
	}
	return &frame{canonical: l.canonical, shown: l.shown, limit: l.policy.MaxDepth}
}

// push returns ctx for the call of a candidate of the URI whose frame is f.
func (f *frame) push(ctx context.Context, canonical, shown string) context.Context {
	return context.WithValue(ctx, frameKey{}, &frame{
		before: f, canonical: canonical, shown: shown, depth: f.depth + 1, limit: f.limit,
	})
}

// cycle returns the way from the step that canonical repeats back to it, nil if
// it is new.
func (f *frame) cycle(canonical string) []string {
	var chain []string
	for at := f; at != nil; at = at.before {
		chain = append(chain, at.shown)
		if at.canonical == canonical {
			slices.Reverse(chain)
			return append(chain, at.shown)
		}
	}
	return nil
}

// visit is a candidate as frames know it.
func visit(candidate string) (canonical, shown string) {
	return uri.Canonical(candidate), uri.Redact(candidate)
}
