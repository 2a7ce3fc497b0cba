package serve

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/config/crd"
)

// schema does to an object of one kind what the API server does between a
// request and its store.
type schema struct {
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator
}

// schemas are those of our kinds, by kind. Compiling the rules takes a while,
// so it is done once.
var schemas = sync.OnceValues(func() (map[string]*schema, error) {
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find the definitions: %w", err)
	}
	byKind := map[string]*schema{}
	for _, name := range files {
		data, err := crd.Bases.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the definition %s: %w", name, err)
		}
		kind, s, err := newSchema(data)
		if err != nil {
			return nil, fmt.Errorf("read the definition %s: %w", name, err)
		}
		byKind[kind] = s
	}
	return byKind, nil
})

func newSchema(data []byte) (kind string, s *schema, err error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, definition); err != nil {
		return "", nil, err
	}
	for _, version := range definition.Spec.Versions {
		if version.Name != v1alpha1.GroupVersion.Version {
			continue
		}
		internal := &apiextensions.CustomResourceValidation{}
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, internal, nil); err != nil {
			return "", nil, err
		}
		s := &schema{}
		if s.structural, err = structuralschema.NewStructural(internal.OpenAPIV3Schema); err != nil {
			return "", nil, err
		}
		if s.openAPI, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
			return "", nil, err
		}
		s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
		return definition.Spec.Names.Kind, s, nil
	}
	return "", nil, fmt.Errorf("it has no version %s", v1alpha1.GroupVersion.Version)
}

// admit fills in defaults and returns the rules that the object breaks. old is
// the object that it replaces, nil if there is none. Unlike an API server by
// default, and like kubectl, it refuses fields that the schema does not know.
func (s *schema) admit(object, old *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	unknown := pruning.PruneWithOptions(object.Object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		errs = append(errs, field.Forbidden(field.NewPath(path), "no such field"))
	}
	if len(errs) > 0 {
		return errs
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, s.structural)
	defaulting.Default(object.Object, s.structural)

	errs = append(errs, apivalidation.ValidateObjectMeta(&metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(),
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(),
	}, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, validation.ValidateCustomResource(nil, object.Object, s.openAPI)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object.Object)...)
	if len(errs) > 0 || s.rules == nil {
		return errs // rules presume the schema
	}
	var before any
	if old != nil {
		before = old.Object
	}
	broken, _ := s.rules.Validate(context.Background(), nil, s.structural, object.Object, before, celconfig.RuntimeCELCostBudget)
	return broken
}
