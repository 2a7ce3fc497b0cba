package render

import (
	"errors"
	"fmt"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Document makes the next document of a mux from its facts. What the user has
// to mend is in the verdicts; an error means that nothing must be written.
//
// A mux that is not accepted, whose endpoint cannot be resolved, that would fall
// below its mode's minimum or that a proxy is too old for, keeps the topology of the stored document;
// members of it that are being deleted drain all the same.
func Document(f Facts) (Result, error) {
	if f.Stored != nil && f.Stored.Transitions > f.Transitions {
		return Result{}, ErrDeposed
	}
	f = withCandidates(f.Pinned())
	result := Result{Accepted: AcceptMux(f)}
	t := newTopology(f)
	t.gather(f.Mux)
	frontend := t.frontend()
	result.ResolvedRefs = t.verdict()
	if !HasWorkload(f.Mux) && len(f.Proxies) == 0 && !f.Standalone {
		if result.Accepted.OK {
			result.Shape = t.document(muxconfig.Frontend{}, nil)
		}
		return result, nil
	}
	if result.Accepted.OK && frontend != nil {
		result.Drains = t.drains()
		next := t.document(*frontend, result.Drains)
		result.TooOld = tooOld(f, next)
		if t.enough(next) && result.TooOld == nil {
			return seal(f, result, next)
		}
	}
	if f.Stored == nil {
		return result, nil
	}
	t = newTopology(f)
	t.gatherStored(f.Stored.Root)
	result.Drains = t.drains()
	next := t.document(f.Stored.Frontend, result.Drains)
	if tooOld(f, next) != nil {
		next.Schema = f.Stored.Schema
	}
	if !t.enough(next) {
		// What is left of it was let go by force, and nothing took its place.
		result.Document, result.Drains = f.Stored, nil
		return result, nil
	}
	return seal(f, result, next)
}

// enough reports whether the mode can work with what the document holds, or was
// made to do without by a forced removal.
func (t *topology) enough(d *muxconfig.Document) bool {
	root := d.Mux(d.Root)
	return len(root.Members) >= muxconfig.MinMembers(root.Mode) || t.facts.Stored != nil && len(d.Released) > 0
}

// seal numbers and checks the next document, and keeps the stored one where it
// says the same.
func seal(f Facts, result Result, next *muxconfig.Document) (Result, error) {
	result.Document = f.Stored
	next.Revision = 1 + f.KnownRevision
	if f.Stored != nil {
		next.Revision = 1 + max(f.Stored.Revision, f.KnownRevision)
	}
	next.Transitions = f.Transitions
	if _, err := muxconfig.Encode(next); err != nil {
		var broken *muxconfig.InvalidError
		if !errors.As(err, &broken) {
			return Result{}, fmt.Errorf("render StorageMux %s: %w", f.Mux.Name, err)
		}
		reason := v1alpha1.ReasonInvalid
		if broken.Field == "" {
			reason = v1alpha1.ReasonTooLarge
		}
		result.Accepted = refuse(reason, "%s", broken.Error())
		return result, nil
	}
	if f.Stored == nil || f.Stored.Hash != next.Hash {
		result.Document = next
	}
	return result, nil
}
