package wire

import (
	"strings"
	"testing"
)

func TestNamesOfMetadataComeBack(t *testing.T) {
	dashes := Names{Mark: "x--", Escape: '-', Kept: func(name string) bool { return !strings.ContainsAny(name, "_ü.") }}
	identifiers := Names{Mark: "x_", Escape: '_', Kept: func(name string) bool { return !strings.ContainsAny(name, "-ü.") }}
	for _, name := range []string{"author", "with-dash", "with_line", "x--author", "x_author", "x--5f", "x_2d", "", "ü.-_", "x-", "x_"} {
		for _, n := range []Names{dashes, identifiers} {
			if got := n.From(strings.ToUpper(n.To(name))); got != name {
				t.Errorf("%q became %q and came back as %q", name, n.To(name), got)
			}
			if !n.Kept(n.To(name)) {
				t.Errorf("%q became %q, which is not kept", name, n.To(name))
			}
		}
	}
	for _, foreign := range []string{"x--zz", "x---", "x--a-5"} {
		if got := dashes.From(foreign); got != foreign {
			t.Errorf("%q, which another client wrote, is read as %q", foreign, got)
		}
	}
}
