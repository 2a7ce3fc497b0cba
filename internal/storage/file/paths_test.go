package file

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLocateLeavesOrdinaryKeysAsTheyAre(t *testing.T) {
	long := strings.Repeat("k", 241)
	tests := map[string]string{
		"a":                            "a",
		"a/b/c.txt":                    "a/b/c.txt",
		"100%.txt":                     "100%.txt",
		".hidden/..x":                  ".hidden/..x",
		"a//b":                         "a/%0/b",
		"a/":                           "a/%0",
		"/":                            "%0/%0",
		"./../x":                       "%./%../x",
		"%0/%f/%":                      "%%0/%%f/%%",
		long:                           "%+" + long[:240] + "/%=k",
		long + "/x":                    "%+" + long[:240] + "/%=k/x",
		strings.Repeat("ü", 121):       "%+" + strings.Repeat("ü", 120) + "/%=ü",
		"x" + strings.Repeat("ü", 120): "%+x" + strings.Repeat("ü", 119) + "/%=ü",
	}
	for key, want := range tests {
		if got := locate(key).plain(); got != want {
			t.Errorf("%q is at %q, want %q", key, got, want)
		}
	}
	if got := locate("a/b").alt(); got != "a/%fb" {
		t.Errorf("the second name of a/b is %q", got)
	}
}

func TestEveryKeyHasItsOwnPathAndComesBackFromIt(t *testing.T) {
	pieces := []string{"/", "/", ".", "..", "%", "%0", "%f", "%+", "%=", "a", "ü", strings.Repeat("l", 239), strings.Repeat("ü", 119), "\n"}
	rnd := rand.New(rand.NewPCG(3, 4))
	seen := map[string]string{}
	for range 20_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(6) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		key := b.String()
		l := locate(key)
		for _, p := range []string{l.plain(), l.alt()} {
			if other, taken := seen[p]; taken && other != key {
				t.Fatalf("%q and %q share the path %q", key, other, p)
			}
			seen[p] = key
			n, names := node{dir: "."}, strings.Split(p, "/")
			for i, name := range names {
				if len(name) > 255 || name == "." || name == ".." || name == "" || !utf8.ValidString(name) {
					t.Fatalf("%q becomes %q, which has the name %q", key, p, name)
				}
				child, ok := childOf(n, name, i < len(names)-1)
				if !ok {
					t.Fatalf("%q becomes %q, whose name %q means nothing", key, p, name)
				}
				n = child
			}
			if n.key != key {
				t.Fatalf("%q becomes %q, which lists as %q", key, p, n.key)
			}
		}
	}
}

func TestNamesThatNoKeyIsGivenAreNotListed(t *testing.T) {
	for _, name := range []string{"%", "%x", "%00", "%f", "%f%fa", "%+", "%=x", strings.Repeat("k", 241), "%%" + strings.Repeat("k", 241)} {
		if child, ok := childOf(node{dir: "."}, name, false); ok {
			t.Errorf("%q lists as %q", name, child.key)
		}
	}
}
