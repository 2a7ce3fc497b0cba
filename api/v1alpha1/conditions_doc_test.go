package v1alpha1

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

var updateReference = flag.Bool("update-reference", false, "write docs/reference/conditions.md")

const conditionsReference = "../../docs/reference/conditions.md"

// TestEveryConditionAndReasonIsDescribedInTheReference compares the reference
// with what the comments in conditions.go say.
func TestEveryConditionAndReasonIsDescribedInTheReference(t *testing.T) {
	want := conditionsMarkdown(t)
	if *updateReference {
		if err := os.WriteFile(conditionsReference, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(conditionsReference)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not say what conditions.go says; make manifests writes it", conditionsReference)
	}
}

func conditionsMarkdown(t *testing.T) []byte {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString("# Conditions and their reasons\n\n")
	out.WriteString("Written by `make manifests` from `api/v1alpha1/conditions.go`, whose constants have these values. ")
	out.WriteString("A status in brackets is the one that goes with the reason; without one it is False, and what the text names.\n")
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		title, intro, _ := strings.Cut(oneLine(group.Doc), ". ")
		fmt.Fprintf(&out, "\n## %s\n\n", strings.TrimSuffix(title, "."))
		if intro != "" {
			out.WriteString(intro + "\n\n")
		}
		out.WriteString("| value | meaning |\n|---|---|\n")
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			name := constant.Names[0].Name
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, ok := strings.CutPrefix(oneLine(constant.Doc), name)
			status, meaning, found := strings.Cut(text, ": ")
			if !ok || !found || meaning == "" {
				t.Errorf("the comment of %s must be %q, maybe a status in brackets, \": \" and what it means", name, name)
				continue
			}
			fmt.Fprintf(&out, "| `%s`%s | %s |\n", value, status, strings.ReplaceAll(meaning, "|", `\|`))
		}
	}
	return out.Bytes()
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
