package fallbackuri

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Ladder is a storage.Storage over the candidates of one fallback URI: each is
// either one object, or a base under which keys live. All methods are safe for
// concurrent use; its errors are *storage.Error, those it makes itself with a
// *Failure as their cause.
type Ladder struct {
	opts   Options
	policy Policy
	// bases says that candidates are bases; else each is an object and the key
	// of a call is empty.
	bases            bool
	canonical, shown string
	candidates       []*candidate
	telemetry        *telemetry

	// Each shape of a call is a mux of the engine over the same candidates.
	reads, writes, deletes, lists *muxengine.Mux
	caps                          storage.Capabilities
}

var (
	_ storage.Storage = (*Ladder)(nil)
	_ storage.Checker = (*Ladder)(nil)
)

// NewStorage returns the store of a fallback URI whose candidates are bases. A
// candidate that the resolver refuses is refused here. Close ends it; what the
// resolver returned stays open.
func NewStorage(text string, opts Options) (*Ladder, error) {
	l, err := newLadder(text, opts, true)
	if err != nil {
		return nil, err
	}
	for _, c := range l.candidates {
		if c.refused != nil {
			l.Close()
			return nil, c.refused
		}
	}
	return l, nil
}

func newLadder(text string, opts Options, bases bool) (*Ladder, error) {
	policy, err := opts.Policy.complete()
	if err != nil {
		return nil, err
	}
	u, err := ParseFallbackURI(text, policy.MaxCandidates)
	if err != nil {
		return nil, err
	}
	return buildLadder(u, opts, policy, bases, policy.MaxDepth)
}

// buildLadder makes the ladder of u and of the fallback URIs in it, as deep as a
// walk may go.
func buildLadder(u uri.URI, opts Options, policy Policy, bases bool, depth int) (*Ladder, error) {
	l := &Ladder{opts: opts, policy: policy, bases: bases, caps: storage.AllCapabilities()}
	l.canonical, l.shown = visit(u.String())
	var err error
	if l.telemetry, err = newTelemetry(opts); err != nil {
		return nil, err
	}
	var members []muxengine.Member
	for i, text := range u.Candidates() {
		c := newCandidate(l, i, text, depth)
		l.candidates = append(l.candidates, c)
		l.caps = l.caps.Weakest(c.Capabilities())
		members = append(members, muxengine.Member{
			Name: strconv.Itoa(i), Storage: c, Timeout: c.timeout, MayBlock: c.target.MayBlock,
		})
	}
	for _, shape := range []struct {
		mux    **muxengine.Mux
		mode   muxengine.Mode
		spread bool
	}{
		{&l.reads, l.readMode(), false},
		{&l.writes, l.writeMode(), false},
		{&l.deletes, muxengine.ModeMirror, false},
		{&l.lists, muxengine.ModeFailover, true},
	} {
		cfg := muxengine.Config{
			Name: opts.Name, Mode: shape.mode, Members: members,
			Health: muxengine.Health{Stateless: true},
		}
		if shape.spread {
			cfg.Keyspace = muxengine.KeyspaceSpread
		}
		if *shape.mux, err = muxengine.New(cfg, muxengine.Options{Spool: opts.Spool, PassVersions: true}); err != nil {
			l.Close()
			return nil, fmt.Errorf("composing the candidates: %w", err)
		}
	}
	// Whoever wants uploads in parts stages them on the ladder, as on any store.
	l.caps.Multipart = false
	return l, nil
}

func (l *Ladder) readMode() muxengine.Mode {
	if l.policy.Walk == WalkParallel {
		return muxengine.ModeMirror
	}
	return muxengine.ModeFailover
}

func (l *Ladder) writeMode() muxengine.Mode {
	if l.policy.WriteMode == WriteFirstSuccess {
		return muxengine.ModeFailover
	}
	return muxengine.ModeMirror
}

// Close ends what the ladder runs. Requests in flight go on.
func (l *Ladder) Close() {
	for _, m := range []*muxengine.Mux{l.reads, l.writes, l.deletes, l.lists} {
		if m != nil {
			m.Close()
		}
	}
	for _, c := range l.candidates {
		if c.nested != nil {
			c.nested.Close()
		}
	}
}

// Timeout is how long a call may take to its first byte when every candidate
// takes all the time it has.
func (l *Ladder) Timeout() (total time.Duration) {
	for _, c := range l.candidates {
		total += c.timeout
	}
	return total
}

// Capabilities returns the weakest over all candidates.
func (l *Ladder) Capabilities() storage.Capabilities { return l.caps }

// Check implements storage.Checker: one candidate that is well is enough.
func (l *Ladder) Check(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outcomes := make([]error, len(l.candidates))
	done := make(chan int, len(l.candidates))
	for i, c := range l.candidates {
		go func() {
			outcomes[i] = c.check(ctx)
			done <- i
		}()
	}
	var tried []CandidateError
	for range l.candidates {
		i := <-done
		if outcomes[i] == nil {
			cancel(storage.CauseLostRace)
			return nil
		}
		tried = append(tried, CandidateError{l.candidates[i].shown, outcomes[i]})
	}
	return l.allFailed("Check", tried)
}

// ValidateKey refuses a key that one of the candidates could not hold under its
// base, so that no candidate takes what another must refuse. Its error is
// INVALID_KEY.
func (l *Ladder) ValidateKey(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	room := storage.MaxKeyBytes - l.longestBase()
	if strings.HasPrefix(key, storage.ReservedParts) {
		room -= len(partsUnder) - len(storage.ReservedParts)
	}
	if len(key) > room {
		return storage.Errorf(storage.CodeInvalidKey, op, "the key has %d bytes and must have at most %d, since candidates put their base before it", len(key), room)
	}
	return nil
}

func (l *Ladder) longestBase() int {
	longest := 0
	for _, c := range l.candidates {
		if c.nested != nil {
			longest = max(longest, c.nested.longestBase())
		} else {
			longest = max(longest, len(c.base()))
		}
	}
	return longest
}

// begin starts a call, or refuses it.
func (l *Ladder) begin(ctx context.Context, op, key string, writes bool) (*record, error) {
	f := l.enter(ctx)
	if l.bases && op != "List" {
		if err := l.ValidateKey(op, key); err != nil {
			return nil, err
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, l.aborted(op, context.Cause(ctx))
	case f.depth >= f.limit:
		return nil, l.tooDeep(op, f.depth)
	}
	r := &record{ladder: l, frame: f, op: op, writes: writes, steps: make([]step, len(l.candidates))}
	ctx = l.telemetry.startCall(ctx, r)
	r.ctx = context.WithValue(ctx, recordKey{}, r)
	return r, nil
}

// String returns the fallback URI, redacted.
func (l *Ladder) String() string { return l.shown }
