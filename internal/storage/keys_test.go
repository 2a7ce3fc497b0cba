package storage

import (
	"strings"
	"testing"
)

func TestValidateKeyAcceptsWhatS3Accepts(t *testing.T) {
	for _, key := range []string{"a", "/", "//", ".", "..", "a//b", " ", "%2F", "ü/€/😀", "\n\t", strings.Repeat("k", 1024)} {
		if err := ValidateKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", "\x00", "a\x00b", "\xff", strings.Repeat("k", 1025)} {
		if CodeOf(ValidateKey(key)) != CodeInvalidKey {
			t.Errorf("%q was accepted", key)
		}
	}
}

func TestIsReservedIsTrueOnlyBelowThePrefix(t *testing.T) {
	for key, want := range map[string]bool{
		ProbeKey: true, ReservedTmp + "x": true, ReservedParts: true, ".storagemux/": true,
		".storagemux": false, ".storagemuxer/x": false, "a/.storagemux/x": false,
	} {
		if IsReserved(key) != want {
			t.Errorf("IsReserved(%q) = %t", key, !want)
		}
	}
}
