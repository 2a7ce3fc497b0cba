package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// The API server refuses a definition whose rules might cost too much, from the bounds of what they read; this is its own check.
func TestDefinitionsAreValidAndWithinTheCostLimitsOfTheirRules(t *testing.T) {
	for _, crd := range loadCRDs(t) {
		crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Errorf("%s: %v", crd.Name, err)
		}
	}
}

// foreign are the parts of the schemas that Kubernetes defines; their bounds are not ours to set.
var foreign = []string{
	"metadata",
	"spec.proxy.affinity",
	"spec.proxy.resources",
	"spec.proxy.tolerations[]",
	"status.conditions[]",
}

func TestEveryListHasATypeAndEveryValueABoundAndADescription(t *testing.T) {
	for _, crd := range loadCRDs(t) {
		walkSchema("", crd.Spec.Validation.OpenAPIV3Schema, func(path string, s *apiextensions.JSONSchemaProps) {
			for _, fault := range schemaFaults(path, s) {
				t.Errorf("%s: %s: %s", crd.Spec.Names.Kind, path, fault)
			}
		})
	}
}

// walkSchema visits the schema of every value below s but those that are foreign. Elements of lists have the path of their list
// with [], values of maps that of their map with {}.
func walkSchema(path string, s *apiextensions.JSONSchemaProps, visit func(path string, s *apiextensions.JSONSchemaProps)) {
	if slices.Contains(foreign, path) {
		return
	}
	visit(path, s)
	for name, child := range s.Properties {
		walkSchema(strings.TrimPrefix(path+"."+name, "."), &child, visit)
	}
	if s.Items != nil {
		walkSchema(path+"[]", s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil {
		walkSchema(path+"{}", s.AdditionalProperties.Schema, visit)
	}
}

func schemaFaults(path string, s *apiextensions.JSONSchemaProps) []string {
	var faults []string
	fault := func(broken bool, text string) {
		if broken {
			faults = append(faults, text)
		}
	}
	switch {
	case s.XIntOrString:
		fault(s.Pattern == "" || len(s.XValidations) == 0, "a quantity has no rule that bounds it")
	case s.Type == "array":
		fault(s.XListType == nil, "a list has no listType")
		fault(s.MaxItems == nil, "a list has no bound")
	case s.Type == "string":
		fault(s.MaxLength == nil && s.Enum == nil && s.Format != "date-time" && path != "kind" && path != "apiVersion", "a string has no bound")
	case s.Type == "integer":
		fault(s.Minimum == nil, "an integer has no minimum")
		fault(s.Maximum == nil && strings.HasPrefix(path, "spec"), "an integer has no maximum")
	case s.AdditionalProperties != nil:
		fault(s.MaxProperties == nil, "a map has no bound")
	}
	named := path != "" && !strings.HasSuffix(path, "[]") && !strings.HasSuffix(path, "{}")
	fault(named && s.Description == "", "a field has no description")
	for _, rule := range s.XValidations {
		fault(!strings.Contains(rule.Message, "must"), "the message of a rule does not say what must hold: "+rule.Message)
	}
	return faults
}

func TestColumnsShowReadinessFirstAndReasonsOnlyWhenAsked(t *testing.T) {
	want := map[string]struct{ always, wide []string }{
		"StorageMux":     {[]string{"Ready", "Mode", "Up", "Endpoint", "Age"}, []string{"Reason", "Programmed", "Backends", "Keyspace"}},
		"StorageBackend": {[]string{"Ready", "Type", "State", "Used By", "Age"}, []string{"Reason", "Reachable", "Draining"}},
	}
	for _, crd := range loadCRDs(t) {
		var always, wide []string
		for _, column := range crd.Spec.AdditionalPrinterColumns {
			if column.Priority == 0 {
				always = append(always, column.Name)
			} else {
				wide = append(wide, column.Name)
			}
		}
		if w := want[crd.Spec.Names.Kind]; !slices.Equal(always, w.always) || !slices.Equal(wide, w.wide) {
			t.Errorf("%s has the columns %v and %v, want %v and %v", crd.Spec.Names.Kind, always, wide, w.always, w.wide)
		}
	}
}

// kubectl resolves categories before kinds: one with the name of a kind turns "kubectl edit KIND NAME" into a question for several.
func TestNoCategoryHasANameOfAKind(t *testing.T) {
	names := map[string]bool{}
	for _, crd := range loadCRDs(t) {
		names[crd.Spec.Names.Plural], names[crd.Spec.Names.Singular] = true, true
		for _, short := range crd.Spec.Names.ShortNames {
			names[short] = true
		}
	}
	for _, crd := range loadCRDs(t) {
		if categories := crd.Spec.Names.Categories; len(categories) != 1 || names[categories[0]] || categories[0] == "all" {
			t.Errorf("the categories of %s are %q, and must be one that is no name of a kind (%v) and not all", crd.Spec.Names.Kind, categories, names)
		}
	}
}
