package muxconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

func TestDecodeReadsBackWhatEncodeWrote(t *testing.T) {
	want := validDocument()
	got, err := Decode(mustEncode(t, want))
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Decode gave %+v, want %+v", got, want)
	}
}

func TestDecodeRefusesWhatEncodeDidNotWrite(t *testing.T) {
	encoded := string(mustEncode(t, validDocument()))
	tests := []struct{ name, data, want string }{
		{"nothing", "", "decode the document"},
		{"no object", "[]", "decode the document"},
		{"a cut document", encoded[:len(encoded)-1], "decode the document"},
		{"something after it", encoded + "{}", "decode the document"},
		{"an unknown field", strings.Replace(encoded, `"root"`, `"extra":1,"root"`, 1), `unknown field "extra"`},
		{"an unknown field deep inside", strings.Replace(encoded, `"weight":3`, `"weight":3,"burst":1`, 1), `unknown field "burst"`},
		{"a later schema", strings.Replace(encoded, `"schema":2`, `"schema":3,"novelty":true`, 1), "schema: version 3 must be 1 to 2"},
		{"a changed value", strings.Replace(encoded, `"weight":3`, `"weight":4`, 1), "hash: must be the hash of the content"},
		{"a duration that is none", strings.Replace(encoded, `"backendTimeout":"30s"`, `"backendTimeout":"soon"`, 1), `"soon" must be a duration such as 30s`},
		{"too many bytes", encoded + strings.Repeat(" ", MaxBytes), "must have at most 262144"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Decode([]byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Decode gave error %v, want one with %q", err, tt.want)
			}
			if doc != nil {
				t.Error("Decode gave a document together with an error")
			}
		})
	}
}

func TestDecodeRefusesAnInvalidDocumentWithAFittingHash(t *testing.T) {
	d := validDocument()
	d.Muxes[0].Mode = "random"
	hash, err := ContentHash(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Hash = hash
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := Decode(data); doc != nil || err == nil || !strings.HasPrefix(err.Error(), "muxes[assets].mode") {
		t.Errorf("Decode gave %v, %v", doc, err)
	}
}

func TestEncodeRefusesWhatProxiesWouldRefuse(t *testing.T) {
	invalid := validDocument()
	invalid.Root = "gone"
	large := validDocument()
	large.Backends[1].S3.CABundle = strings.Repeat("x", MaxBytes)
	for name, d := range map[string]*Document{"invalid": invalid, "too large": large} {
		if data, err := Encode(d); err == nil || data != nil {
			t.Errorf("Encode of a document that is %s gave %d bytes and error %v", name, len(data), err)
		}
	}
}

func TestContentHashIgnoresWhoWroteItAndWhen(t *testing.T) {
	a, b := validDocument(), validDocument()
	b.Revision, b.Transitions, b.Hash = 99, 4, "other"
	hashA, errA := ContentHash(a)
	hashB, errB := ContentHash(b)
	if errA != nil || errB != nil || hashA != hashB {
		t.Errorf("hashes %s, %s differ (%v, %v)", hashA, hashB, errA, errB)
	}
	b.Backends[1].S3.Auth.SecretAccessKey = "another"
	if changed, err := ContentHash(b); err != nil || changed == hashA {
		t.Errorf("another credential gave the same hash (%v)", err)
	}
}

func TestNoSecretIsEverPrinted(t *testing.T) {
	d := validDocument()
	web, zone, swift, azure := asHTTP(&Backend{}), asBunny(&Backend{}), asSwift(&Backend{}), asAzure(&Backend{})
	azure.Auth.SASToken = "azure-signature"
	web.Auth.Token, web.Auth.Headers = "token-of-the-web", map[string]Secret{"X-Key": "header-secret"}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+"\n", d.Admin.Token)
		fmt.Fprintf(&out, verb+"\n", &d.Admin.Token)
		fmt.Fprintf(&out, verb+"\n", *d)
		fmt.Fprintf(&out, verb+"\n", d.Frontend)
		fmt.Fprintf(&out, verb+"\n", d.Backends[1].S3)
		fmt.Fprintf(&out, verb+"\n", web)
		fmt.Fprintf(&out, verb+"\n", &web.Auth)
		fmt.Fprintf(&out, verb+"\n", zone)
		fmt.Fprintf(&out, verb+"\n", swift)
		fmt.Fprintf(&out, verb+"\n", &swift.Auth)
		fmt.Fprintf(&out, verb+"\n", azure)
		fmt.Fprintf(&out, verb+"\n", &azure.Auth)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("one secret", "token", d.Admin.Token)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("a struct", "admin", d.Admin, "document", d)
	fmt.Fprintln(&out, fmt.Errorf("wrap %v", d.Keys))

	for _, secret := range []Secret{
		d.Admin.Token, d.Admin.TLS.Key, d.Frontend.KeyPairs[0].SecretAccessKey, d.Frontend.TLS.Key, d.Keys.Current,
		d.Backends[1].S3.Auth.SecretAccessKey, d.Backends[1].S3.Auth.SessionToken,
		web.Auth.Password, web.Auth.Token, web.Auth.Headers["X-Key"],
		zone.AccessKey, swift.Auth.Password, azure.Auth.Key, azure.Auth.SASToken,
	} {
		for _, form := range []string{secret.Reveal(), fmt.Sprintf("%x", secret.Reveal()), fmt.Sprintf("%X", secret.Reveal())} {
			if strings.Contains(out.String(), form) {
				t.Errorf("%s was printed", form)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(mustEncode(f, validDocument()))
	bare := validDocument()
	bare.Muxes, bare.Frontend.TLS = bare.Muxes[:1], nil
	bare.Muxes[0].Members = bare.Muxes[0].Members[:1]
	f.Add(mustEncode(f, bare))
	f.Add([]byte(`{"schema":1}`))
	f.Add([]byte(`{"schema":1,"muxes":[{"members":[{"drain":{"deadline":"2026-11-30T00:00:00Z"}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(doc)
		if err != nil {
			t.Fatalf("Encode refuses what Decode took: %v", err)
		}
		if _, err := Decode(again); err != nil {
			t.Fatalf("Decode refuses what Encode wrote: %v", err)
		}
	})
}
