package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const crdFolder = "../../config/crd/bases"

// loadCRDs reads the generated definitions as an API server does, with its defaults set.
func loadCRDs(t *testing.T) []*apiextensions.CustomResourceDefinition {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("looking for two definitions in %s: found %v, %v", crdFolder, paths, err)
	}
	var crds []*apiextensions.CustomResourceDefinition
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var external apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &external); err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
		crd := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, crd, nil); err != nil {
			t.Fatalf("converting %s: %v", path, err)
		}
		crds = append(crds, crd)
	}
	return crds
}

// schemaServer answers as an API server would, by the same libraries and without a process: it prunes, sets defaults and
// validates. It knows the two kinds of this package and takes every object of another kind.
type schemaServer struct {
	kinds  map[string]schemaKind
	stored map[string]*unstructured.Unstructured
}

type schemaKind struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func newSchemaServer(t *testing.T) *schemaServer {
	t.Helper()
	server := &schemaServer{kinds: map[string]schemaKind{}, stored: map[string]*unstructured.Unstructured{}}
	for _, crd := range loadCRDs(t) {
		props := crd.Spec.Validation.OpenAPIV3Schema
		structural, err := schema.NewStructural(props)
		if err != nil {
			t.Fatal(err)
		}
		validator, _, err := validation.NewSchemaValidator(props)
		if err != nil {
			t.Fatal(err)
		}
		server.kinds[crd.Spec.Names.Kind] = schemaKind{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	return server
}

// put creates or replaces an object and returns what the server objects to, a line each.
func (s *schemaServer) put(ctx context.Context, _ *testing.T, obj *unstructured.Unstructured) []string {
	kind, ours := s.kinds[obj.GetKind()]
	if !ours {
		return nil
	}
	var lines []string
	unknown := pruning.PruneWithOptions(obj.Object, kind.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		lines = append(lines, `unknown field "`+path+`"`)
	}
	if len(lines) > 0 {
		return lines
	}
	defaulting.Default(obj.Object, kind.structural)

	key := obj.GetKind() + "/" + obj.GetName()
	old, exists := s.stored[key]
	var errs field.ErrorList
	var oldObject any
	if exists {
		oldObject = old.Object
		errs = validation.ValidateCustomResourceUpdate(nil, obj.Object, old.Object, kind.validator)
	} else {
		errs = validation.ValidateCustomResource(nil, obj.Object, kind.validator)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, kind.structural, obj.Object)...)
	if !blocksRules(errs) {
		ruleErrs, _ := kind.rules.Validate(ctx, nil, kind.structural, obj.Object, oldObject, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruleErrs...)
	}
	for _, err := range errs {
		lines = append(lines, err.Field+": "+err.ErrorBody())
	}
	if len(lines) == 0 {
		s.stored[key] = obj.DeepCopy()
	}
	return lines
}

// blocksRules tells whether errs hold one of the kinds of error after which an API server does not run CEL rules.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
