package storage

import (
	"encoding/hex"
	"testing"
)

func TestVerifierKnowsTheCheckValueOfEveryDigest(t *testing.T) {
	// The digests of "123456789", as the algorithms' definitions give them.
	raw := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tests := map[string]Checksums{
		"MD5":       {MD5: raw("25f9e794323b453885f5181f1b624d0b")},
		"SHA1":      {SHA1: raw("f7c3bc1d808e04732adf679965ccc34ca7ae3441")},
		"SHA256":    {SHA256: raw("15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225")},
		"CRC32":     {CRC32: raw("cbf43926")},
		"CRC32C":    {CRC32C: raw("e3069283")},
		"CRC64NVME": {CRC64NVME: raw("ae8b14860a799888")},
	}
	for name, sums := range tests {
		v := NewVerifier(sums)
		v.Write([]byte("1234"))
		if v.Verify() == nil {
			t.Errorf("%s: half the content passed", name)
		}
		v.Write([]byte("56789"))
		if err := v.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var nothing *Verifier
	if NewVerifier(Checksums{}) != nothing || nothing.Verify() != nil {
		t.Error("no checksums must verify nothing")
	}
}
