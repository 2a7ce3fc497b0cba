package muxengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// begin starts an upload of key "k".
func (r *rig) begin() string {
	r.t.Helper()
	id, err := r.CreateUpload(context.Background(), "k", storage.SetOptions{Metadata: map[string]string{"owner": "me"}})
	if err != nil {
		r.t.Fatalf("create: %v", err)
	}
	return id
}

// part uploads a part of key "k".
func (r *rig) part(id string, number int, data string) (storage.Part, error) {
	return r.UploadPart(context.Background(), "k", id, number, once(data), storage.SetOptions{})
}

func (r *rig) mustPart(id string, number int, data string) storage.Part {
	r.t.Helper()
	p, err := r.part(id, number, data)
	if err != nil {
		r.t.Fatalf("part %d: %v", number, err)
	}
	return p
}

func (r *rig) complete(id string, parts ...storage.Part) (storage.Info, error) {
	named := make([]storage.Part, len(parts))
	for i, p := range parts {
		named[i] = storage.Part{Number: p.Number, ETag: p.ETag}
	}
	return r.CompleteUpload(context.Background(), "k", id, named, storage.SetOptions{})
}

func TestAnUploadInPartsEndsAsOneObjectInEveryMode(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeRoundRobin, ModeWeighted, ModeStickyByKey, ModeShield, ModeMirror} {
		for _, salts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/own tags %t", mode, salts), func(t *testing.T) {
				options := []option{inMode(mode)}
				if mode == ModeWeighted {
					options = append(options, withWeights(1, 2, 3))
				}
				r := newRig(t, 3, options...)
				for _, f := range r.stores {
					if salts {
						f.salt = f.name
					}
				}
				id := r.begin()
				two := r.mustPart(id, 2, "world")
				r.mustPart(id, 1, "replaced")
				one := r.mustPart(id, 1, "hello ")
				listed, more, err := r.ListParts(context.Background(), "k", id, 0, 10)
				if err != nil || more || len(listed) != 2 || listed[0].ETag != one.ETag || listed[1].ETag != two.ETag {
					t.Fatalf("listed %+v, %t, %v; want %+v, %+v", listed, more, err, one, two)
				}
				if _, err := r.get("k"); storage.CodeOf(err) != storage.CodeKeyNotFound {
					t.Fatalf("before the end a reader gets %v", err)
				}
				info, err := r.complete(id, one, two)
				if err != nil || info.Version == "" || info.Metadata[versionKey] != "" {
					t.Fatalf("complete: %+v, %v", info, err)
				}
				held := 0
				for _, f := range r.stores {
					if f.has("k") {
						held++
						if f.content("k") != "hello world" || f.objects["k"].info.Metadata["owner"] != "me" {
							t.Errorf("%s holds %q with %v", f.name, f.content("k"), f.objects["k"].info.Metadata)
						}
					}
					if n := f.openUploads(); n != 0 {
						t.Errorf("%s has %d open uploads", f.name, n)
					}
				}
				if want := map[bool]int{true: 3, false: 1}[modes[mode].write == fanOut]; held != want {
					t.Errorf("%d stores hold the object, want %d", held, want)
				}
				if _, err := r.complete(id, one, two); err != nil {
					t.Errorf("completing once more: %v", err)
				}
				if n := len(r.told(TopicFanoutPartial)); n != 0 {
					t.Errorf("%d fanout-partial", n)
				}
			})
		}
	}
}

func TestAnyReplicaGoesOnWithAnUpload(t *testing.T) {
	r := newRig(t, 3, inMode(ModeMirror))
	other, err := New(*r.node.Load().cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	id := r.begin()
	part, err := other.UploadPart(context.Background(), "k", id, 1, once("data"), storage.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.complete(id, part); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, r.stores, "completeUpload", 1, 1, 1)
}

func TestAWalkKeepsAnUploadWithItsMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		id := r.begin()
		part := r.mustPart(id, 1, "data")
		r.stores[0].fail(unavailable())
		_, err := r.part(id, 2, "more")
		wantCode(t, err, storage.CodeAllBackendsDown)
		_, err = r.complete(id, part)
		wantCode(t, err, storage.CodeAllBackendsDown)
		wantCounts(t, r.stores, "uploadPart", 2, 0)
		r.stores[0].fail(nil)
		time.Sleep(2 * time.Second)
		if _, err = r.complete(id, part); err != nil {
			t.Fatalf("with the member back: %v", err)
		}
	})
}

func TestAnUploadWhoseMemberIsGoneIsNotFound(t *testing.T) {
	r := newRig(t, 3)
	id := r.begin()
	part := r.mustPart(id, 1, "data")
	if err := r.RemoveBackend("a"); err != nil {
		t.Fatal(err)
	}
	_, err := r.complete(id, part)
	wantCode(t, err, storage.CodeUploadNotFound)
}

func TestTheNextOriginOfAShieldGoesOnWithAnUploadThatItHas(t *testing.T) {
	r := newRig(t, 3, inMode(ModeShield))
	id := r.begin()
	part := r.mustPart(id, 1, "data")
	if err := r.RemoveBackend("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.complete(id, part); err != nil {
		t.Fatal(err)
	}
	if err := r.AddBackend(Member{Name: "d", Storage: newFake("d")}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if err := r.RemoveBackend(name); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.complete(id, part)
	wantCode(t, err, storage.CodeUploadNotFound)
}

func TestAMemberThatDrainsTakesThePartsOfOpenUploads(t *testing.T) {
	r := newRig(t, 2)
	id := r.begin()
	if err := r.withDrain(Drain{Phase: DrainGranted}); err != nil {
		t.Fatal(err)
	}
	part := r.mustPart(id, 1, "data")
	if _, err := r.complete(id, part); err != nil {
		t.Fatal(err)
	}
	if fresh := r.begin(); r.stores[1].openUploads() != 1 {
		t.Fatalf("a new upload %s began on the member that drains", fresh)
	}
}

func TestCompleteLeavesOutAndNamesMembersWhosePartsDiffer(t *testing.T) {
	for _, salts := range []bool{false, true} {
		r := newRig(t, 3, inMode(ModeMirror))
		for _, f := range r.stores {
			if salts {
				f.salt = f.name
			}
		}
		id := r.begin()
		r.mustPart(id, 1, "old")
		r.stores[1].set(func(_ context.Context, op, _ string) error {
			if op == "uploadPart" {
				return storage.Errorf(storage.CodeAccessDenied, "", "not this one")
			}
			return nil
		})
		part := r.mustPart(id, 1, "new")
		if _, err := r.complete(id, part); err != nil {
			t.Fatal(err)
		}
		if r.stores[0].content("k") != "new" || r.stores[1].has("k") || r.stores[2].content("k") != "new" {
			t.Fatalf("a: %q, b: %q, c: %q", r.stores[0].content("k"), r.stores[1].content("k"), r.stores[2].content("k"))
		}
		partial := r.told(TopicFanoutPartial)
		if len(partial) != 1 || !slices.Equal(partial[0].Failed, []string{"b"}) {
			t.Fatalf("fanout-partial: %+v", partial)
		}
	}
}

func TestCompleteRefusesPartsThatNoMemberHolds(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeMirror, ModeShield} {
		r := newRig(t, 2, inMode(mode))
		id := r.begin()
		old := r.mustPart(id, 1, "old")
		r.mustPart(id, 1, "new")
		_, err := r.complete(id, old)
		wantCode(t, err, storage.CodeInvalidPart)
	}
}

func TestCompleteNamesMembersThatTheUploadDidNotBeginOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.stores[2].fail(unavailable())
		_ = r.put("other", "x")
		id := r.begin()
		r.stores[2].fail(nil)
		part := r.mustPart(id, 1, "data")
		before := len(r.told(TopicFanoutPartial))
		if _, err := r.complete(id, part); err != nil {
			t.Fatal(err)
		}
		partial := r.told(TopicFanoutPartial)[before:]
		if len(partial) != 1 || !slices.Equal(partial[0].Failed, []string{"c"}) || !slices.Equal(partial[0].Skipped, []string{"c"}) {
			t.Fatalf("fanout-partial: %+v", partial)
		}
	})
}

func TestAPartOfAShieldNeedsItsOrigin(t *testing.T) {
	r := newRig(t, 2, inMode(ModeShield))
	id := r.begin()
	r.stores[0].fail(unavailable())
	_, err := r.part(id, 1, "data")
	wantCode(t, err, storage.CodeAllBackendsDown)
}

func TestACompleteThatNobodyAnsweredIsLookedFor(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeMirror} {
		r := newRig(t, 2, inMode(mode))
		lost := func(_ context.Context, op string) error {
			if op == "completeUpload" {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		for _, f := range r.stores {
			f.after = lost
		}
		id := r.begin()
		part := r.mustPart(id, 1, "data")
		info, err := r.complete(id, part)
		if err != nil || info.Version == "" {
			t.Fatalf("%s: %+v, %v", mode, info, err)
		}
		r.mustGet("k", "data")
	}
}

func TestACompleteThatMayHaveBeenDoneIsNotMadeAgainElsewhere(t *testing.T) {
	r := newRig(t, 2)
	id := r.begin()
	part := r.mustPart(id, 1, "data")
	r.stores[0].set(func(_ context.Context, op, _ string) error {
		if op == "completeUpload" {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	_, err := r.complete(id, part)
	var e *storage.Error
	if !errors.As(err, &e) || e.Status != 503 || e.Outcome != storage.OutcomeUnknown {
		t.Fatalf("got %v", err)
	}
}

func TestACompleteMayTakeLongWhileTheStoreGetsOn(t *testing.T) {
	for name, quiet := range map[string]bool{"it gets on": false, "it stands still": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, withTimeout(time.Second))
				id := r.begin()
				part := r.mustPart(id, 1, "data")
				r.stores[0].set(func(ctx context.Context, op, _ string) error {
					for range 20 {
						if !quiet {
							storage.Progress(ctx)()
						}
						time.Sleep(500 * time.Millisecond)
						if op != "completeUpload" || ctx.Err() != nil {
							return ctx.Err()
						}
					}
					return nil
				})
				_, err := r.complete(id, part)
				if quiet != (err != nil) {
					t.Fatalf("got %v", err)
				}
			})
		})
	}
}

func TestAnAbortReachesEveryMember(t *testing.T) {
	r := newRig(t, 3, inMode(ModeMirror))
	id := r.begin()
	r.mustPart(id, 1, "data")
	if err := r.AbortUpload(context.Background(), "k", id); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.stores {
		if f.openUploads() != 0 {
			t.Errorf("%s keeps the upload", f.name)
		}
	}
}

func TestAConditionalCompleteIsArbitratedByTheFirstMember(t *testing.T) {
	r := newRig(t, 2, inMode(ModeMirror))
	r.stores[0].put("k", "there", nil)
	id := r.begin()
	part := r.mustPart(id, 1, "data")
	_, err := r.CompleteUpload(context.Background(), "k", id, []storage.Part{part}, storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}})
	wantCode(t, err, storage.CodePreconditionFailed)
	if r.stores[1].has("k") {
		t.Fatal("the second member has the object")
	}
	s := newRig(t, 2, inMode(ModeMirror), spread)
	id = s.begin()
	part = s.mustPart(id, 1, "data")
	_, err = s.CompleteUpload(context.Background(), "k", id, []storage.Part{part}, storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}})
	wantCode(t, err, storage.CodeUnsupported)
}

func TestInSpreadACompletedUploadReplacesOlderCopies(t *testing.T) {
	r := newRig(t, 2, spread)
	r.stores[1].put("k", "old", map[string]string{versionKey: "0"})
	id := r.begin()
	part := r.mustPart(id, 1, "new")
	if _, err := r.complete(id, part); err != nil {
		t.Fatal(err)
	}
	if r.stores[1].has("k") {
		t.Fatal("the old copy is still there")
	}
}

func TestUploadsGoThroughNestedMuxes(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		stores := []*fake{newFake("a"), newFake("b"), newFake("c")}
		inner := Config{Name: "inner", Mode: ModeMirror, Members: []Member{{Name: "a", Storage: stores[0]}, {Name: "b", Storage: stores[1]}}}
		first := Member{Name: "inner", Mux: &inner}
		if foreign {
			m, err := New(inner, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			first = Member{Name: "inner", Storage: m}
		}
		r := newRig(t, 0, func(cfg *Config, _ *Options) {
			cfg.Members = []Member{first, {Name: "c", Storage: stores[2]}}
		})
		stores[1].salt = "b"
		id := r.begin()
		part := r.mustPart(id, 1, strings.Repeat("data", 1<<16))
		if _, err := r.complete(id, part); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, stores, "completeUpload", 1, 1, 0)
		if foreign {
			continue
		}
		r.stores = stores
		for _, f := range stores[:2] {
			f.fail(unavailable())
		}
		_ = r.put("other", "x")
		id = r.begin()
		part = r.mustPart(id, 1, "data")
		if _, err := r.complete(id, part); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, stores, "completeUpload", 1, 1, 1)
	}
}

func TestUploadsNeedEveryBackendToTakeParts(t *testing.T) {
	r := newRig(t, 2, withMembers(func(i int, m *Member) {
		if i == 1 {
			m.Storage = struct{ storage.Storage }{m.Storage}
		}
	}))
	_, err := r.CreateUpload(context.Background(), "k", storage.SetOptions{})
	wantCode(t, err, storage.CodeUnsupported)
}

func TestUploadIDsOfOthersAreNotFound(t *testing.T) {
	r := newRig(t, 1)
	for _, id := range []string{"", "x", "{}", `{"u":[]}`, `{"u":[{"l":"zz","i":"a"}]}`, strings.Repeat("x", storage.MaxUploadIDBytes+1)} {
		_, err := r.part(id, 1, "data")
		wantCode(t, err, storage.CodeUploadNotFound)
	}
}

func TestUploadsOfAWalkAreListedMemberByMemberWithoutLossOrRepetition(t *testing.T) {
	for limit := 1; limit <= 12; limit++ {
		r := newRig(t, 3, inMode(ModeRoundRobin))
		var want []string
		for _, key := range []string{"a", "k", "k/1", "z"} {
			for range 3 {
				id, err := r.CreateUpload(context.Background(), key, storage.SetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				u, _ := decodeUploadID(id)
				want = append(want, key+" "+u.Leaves[0].ID)
			}
		}
		extra, err := r.stores[1].CreateUpload(context.Background(), "k", storage.SetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, "k "+extra)
		slices.Sort(want)
		var got []string
		opts := storage.ListUploadsOptions{Limit: limit}
		for range 20 {
			page, err := r.ListUploads(context.Background(), opts)
			if err != nil || len(page.Uploads) > limit {
				t.Fatalf("limit %d: %d uploads, %v", limit, len(page.Uploads), err)
			}
			for _, upload := range page.Uploads {
				u, err := decodeUploadID(upload.ID)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, upload.Key+" "+u.Leaves[0].ID)
			}
			if opts.AfterKey, opts.AfterID = page.NextKey, page.NextID; opts.AfterKey == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("limit %d:\n got %q\nwant %q", limit, got, want)
		}
	}
	r := newRig(t, 2, inMode(ModeMirror))
	_, err := r.ListUploads(context.Background(), storage.ListUploadsOptions{})
	wantCode(t, err, storage.CodeUnsupported)
}

func FuzzUploadID(f *testing.F) {
	f.Add(`{"v":"1","u":[{"l":"1a","i":"x"}]}`, "smx-0123456789abcdef")
	f.Fuzz(func(t *testing.T, id, tag string) {
		u, err := decodeUploadID(id)
		if err != nil {
			return
		}
		for i := range u.Leaves {
			holds(tag, i, len(u.Leaves), "own")
		}
		if again, err := u.encode(); err == nil {
			if _, err := decodeUploadID(again); err != nil {
				t.Fatalf("%q became %q: %v", id, again, err)
			}
		}
	})
}
