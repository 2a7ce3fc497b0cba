package serve

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is something in the manifests that the user has to mend. Its text is
// one line.
type Problem struct {
	// File holds the object, Object is its kind and name.
	File, Object string
	// Field is the field that breaks Rule, where one does.
	Field, Rule string
}

// Error implements error.
func (p *Problem) Error() string {
	var parts []string
	for _, part := range []string{p.File, p.Object, p.Field, p.Rule} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, ": ")), " ")
}

// ExitCode is that of a command whose input is at fault.
func (*Problem) ExitCode() int { return 2 }

func problemf(m manifest, format string, args ...any) *Problem {
	return &Problem{File: m.file, Object: m.String(), Rule: fmt.Sprintf(format, args...)}
}

// fieldProblem takes the first of the rules that m breaks.
func fieldProblem(m manifest, errs field.ErrorList) *Problem {
	first := errs[0]
	p := &Problem{File: m.file, Object: m.String(), Field: first.Field, Rule: first.ErrorBody()}
	if p.Field == "<nil>" {
		p.Field = ""
	}
	// The messages of rules in CEL say all by themselves.
	if p.Rule == "Invalid value: "+first.Detail {
		p.Rule = first.Detail
	}
	if more := len(errs) - 1; more > 0 {
		p.Rule += fmt.Sprintf(" (and %d more)", more)
	}
	return p
}
