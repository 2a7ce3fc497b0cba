package storage

import "testing"

func TestWeakestTakesTheWeakerOfEachCapability(t *testing.T) {
	all := AllCapabilities()
	if all.Weakest(all) != all {
		t.Error("all capabilities are not neutral")
	}
	none := Capabilities{Identity: IdentityWeak}
	if all.Weakest(none) != none || none.Weakest(all) != none {
		t.Error("nothing does not absorb")
	}
	a, b := all, all
	a.PartialWrite, a.Identity = false, IdentityStored
	b.Multipart = false
	want := all
	want.PartialWrite, want.Multipart, want.Identity = false, false, IdentityStored
	if got := a.Weakest(b); got != want || b.Weakest(a) != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (Capabilities{Identity: "unheard of"}).Weakest(all); got.Identity.rank() != IdentityWeak.rank() {
		t.Errorf("an unknown identity counts as %q and must count as weak", got.Identity)
	}
}
