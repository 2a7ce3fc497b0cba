package muxconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestWalkVisitsParentsBeforeChildrenInListOrder(t *testing.T) {
	var got []string
	err := Walk(validDocument(), func(path string, parent *Mux, _ *Member) { got = append(got, parent.Name+":"+path) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"assets:primary", "assets:mirrors", "mirrors:mirrors/eu", "mirrors:mirrors/us"}
	if !slices.Equal(got, want) {
		t.Errorf("Walk visited %v, want %v", got, want)
	}
}

// chain is a document whose root holds depth-1 muxes, one inside the other.
func chain(depth int) *Document {
	d := validDocument()
	leaf := d.Muxes[0]
	d.Muxes = nil
	for i := range depth {
		mux := leaf
		mux.Name, mux.UID = fmt.Sprintf("m%d", i), fmt.Sprintf("u%d", i)
		mux.Members = []Member{{Name: "next", Mux: fmt.Sprintf("m%d", i+1)}}
		if i == depth-1 {
			mux.Members = []Member{{Name: "leaf", Backend: "eu"}}
		}
		d.Muxes = append(d.Muxes, mux)
	}
	d.Root = "m0"
	return d
}

func TestWalkBoundsDepthMembersAndCycles(t *testing.T) {
	cycle := chain(3)
	cycle.Muxes[2].Members = []Member{{Name: "back", Mux: "m1"}}

	// Eight muxes per mux, three levels deep, are few muxes but many paths.
	wide := chain(3)
	wide.Muxes[0].Members, wide.Muxes[1].Members, wide.Muxes[2].Members = nil, nil, nil
	for i := range 8 {
		name := fmt.Sprintf("n%d", i)
		wide.Muxes[0].Members = append(wide.Muxes[0].Members, Member{Name: name, Mux: "m1"})
		wide.Muxes[1].Members = append(wide.Muxes[1].Members, Member{Name: name, Mux: "m2"})
		wide.Muxes[2].Members = append(wide.Muxes[2].Members, Member{Name: name, Backend: "eu"})
	}

	tests := []struct {
		name string
		doc  *Document
		want string
	}{
		{"as deep as may be", chain(MaxDepth), ""},
		{"deeper", chain(MaxDepth + 1), "muxes: muxes must not be nested deeper than 8: m0 -> m1 -> m2 -> m3 -> m4 -> m5 -> m6 -> m7 -> m8"},
		{"a cycle", cycle, "muxes: a mux must not contain itself: m0 -> m1 -> m2 -> m1"},
		{"too many paths", wide, "muxes: the topology must have at most 256 members"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := Walk(tt.doc, nil); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Walk gave %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSupersedesNeverGoesBack(t *testing.T) {
	doc := func(transitions, revision int64) *Document {
		return &Document{Transitions: transitions, Revision: revision}
	}
	tests := []struct {
		name     string
		new, old *Document
		want     bool
	}{
		{"nothing before", doc(0, 1), nil, true},
		{"the same", doc(2, 5), doc(2, 5), false},
		{"a later revision", doc(2, 6), doc(2, 5), true},
		{"an earlier revision", doc(2, 4), doc(2, 5), false},
		{"an earlier leader with a later revision", doc(1, 9), doc(2, 5), false},
		{"a later leader", doc(3, 6), doc(2, 5), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.new.Supersedes(tt.old); got != tt.want {
				t.Errorf("Supersedes gave %t, want %t", got, tt.want)
			}
		})
	}
}

func TestCursorReadsBackWhatItWrote(t *testing.T) {
	report := Report{BootID: "0f3a-77", Seq: 42}
	boot, seq, err := ParseCursor(report.Cursor())
	if err != nil || boot != "0f3a-77" || seq != 42 {
		t.Errorf("ParseCursor(%q) = %q, %d, %v", report.Cursor(), boot, seq, err)
	}
	if boot, seq, err := ParseCursor(""); boot != "" || seq != 0 || err != nil {
		t.Errorf("an empty cursor gave %q, %d, %v", boot, seq, err)
	}
	for _, bad := range []string{"boot", ".7", "boot.", "boot.x", "boot.-1", "boot.7.8"} {
		if _, _, err := ParseCursor(bad); err == nil || !strings.HasPrefix(err.Error(), "cursor: ") {
			t.Errorf("ParseCursor(%q) gave error %v", bad, err)
		}
	}
}
