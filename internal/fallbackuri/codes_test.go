package fallbackuri

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

// TestEveryCodeIsReachedFromARealCallWithItsDetails is the sweep over the eight.
func TestEveryCodeIsReachedFromARealCallWithItsDetails(t *testing.T) {
	down := func(r *rig) {
		for _, f := range []*fake{r.a, r.b, r.c} {
			f.fail(unavailable())
		}
	}
	get := func(r *rig, text string) error {
		_, _, err := r.Get(r.t.Context(), text)
		return err
	}
	for code, tc := range map[storage.Code]struct {
		call   func(r *rig) error
		detail func(f *Failure) bool
	}{
		storage.CodeFallbackNoCandidates: {
			func(r *rig) error { return get(r, "fallback://?") },
			func(f *Failure) bool { return f.URI == "fallback://redacted" },
		},
		storage.CodeFallbackInvalidURI: {
			func(r *rig) error { return get(r, "https://host/?u=a:b") },
			func(f *Failure) bool { return f.URI == "https://host/?redacted" },
		},
		storage.CodeFallbackAllCandidatesFailed: {
			func(r *rig) error { down(r); return get(r, abc) },
			func(f *Failure) bool { return f.URI == shown(abc) && len(f.CandidateErrors) == 3 && f.Unwrap() != nil },
		},
		storage.CodeFallbackWriteMirrorFailed: {
			func(r *rig) error { r.c.fail(unavailable()); return r.set("x") },
			func(f *Failure) bool { return f.URI == shown(abc) && len(f.MirrorOutcomes) == 3 },
		},
		storage.CodeFallbackListUnionFailed: {
			func(r *rig) error {
				r.c.fail(unavailable())
				_, err := r.List(r.t.Context(), abc, storage.ListOptions{})
				return err
			},
			func(f *Failure) bool { return f.URI == shown(abc) && len(f.CandidateErrors) == 1 },
		},
		storage.CodeFallbackAborted: {
			func(r *rig) error {
				ctx, cancel := context.WithCancel(r.t.Context())
				cancel()
				return r.Delete(ctx, abc)
			},
			func(f *Failure) bool { return f.URI == shown(abc) },
		},
		storage.CodeFallbackMaxDepthExceeded: {
			func(r *rig) error { return get(r, nested(5, "memory://a/k")) },
			func(f *Failure) bool { return f.URI != "" && f.Depth == 4 },
		},
		storage.CodeFallbackCircularReference: {
			func(r *rig) error {
				_, err := storage.Has(r.t.Context(), circleOf(r.t, r, "memory://self"), "k")
				return err
			},
			func(f *Failure) bool { return f.URI != "" && len(f.CycleChain) == 2 },
		},
	} {
		t.Run(string(code), func(t *testing.T) {
			if f := wantFailure(t, tc.call(newRig(t, Policy{})), code); !tc.detail(f) {
				t.Fatalf("got %+v", f)
			}
		})
	}
}

func TestLimitsOfCandidatesComeFromThePolicy(t *testing.T) {
	text := func(n int) string {
		return ladderOf(strings.Split(strings.Repeat("memory://a/k ", n)[:13*n-1], " ")...)
	}
	for limit, most := range map[int]int{0: 16, 2: 2, 64: 64} {
		r := newRig(t, Policy{MaxCandidates: limit})
		r.everywhere("x")
		r.wantGet(text(most), "x")
		if most == 64 {
			continue
		}
		_, _, err := r.Get(t.Context(), text(most+1))
		_ = wantFailure(t, err, storage.CodeFallbackInvalidURI)
	}
}

func TestErrorsShowNoCredentials(t *testing.T) {
	const secret = "s3cr3t"
	text := ladderOf("memory://a/k", "https://user:"+secret+"@host/k?sig="+secret, "gopher://host/?"+secret)
	leaky := storage.Errorf(storage.CodeUnavailable, "Get", "no answer").WithCause(errors.New(`Get "https://host/?sig=` + secret + `"`))
	r := newRig(t, Policy{ErrorClass: ErrorClassAny})
	r.a.fail(leaky)
	calls := map[string]error{}
	_, _, calls["get"] = r.Get(t.Context(), text)
	calls["set"] = func() error { _, err := r.Set(t.Context(), text, nil, storage.SetOptions{}); return err }()
	_, calls["list"] = r.List(t.Context(), text, storage.ListOptions{})
	calls["delete"] = r.Delete(t.Context(), text)
	_, calls["strict"] = NewStorage(text, Options{Resolver: r.stores})
	_, _, calls["broken"] = r.Get(t.Context(), text+"&"+secret)
	for op, err := range calls {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", op, err)
		}
	}
	for _, e := range r.events {
		all := e.URI + e.Candidate
		for _, f := range e.Failed {
			all += f.URI
		}
		if strings.Contains(all, secret) {
			t.Errorf("got %+v", e)
		}
	}
}
