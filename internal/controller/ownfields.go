package controller

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fulfils reports whether an apply of intent would change nothing in live: what
// owner has applied of it, by its managed fields, is intent, to the last field.
// What others have taken over since, or taken out, is missing there, and what an
// earlier intent had beyond this one is still there. A false no costs one apply.
func fulfils(live, intent *unstructured.Unstructured, owner string) bool {
	wanted := intent.DeepCopy()
	for _, name := range []string{"apiVersion", "kind"} {
		unstructured.RemoveNestedField(wanted.Object, name)
	}
	for _, name := range []string{"name", "namespace"} {
		unstructured.RemoveNestedField(wanted.Object, "metadata", name)
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != owner || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		fields := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return false
		}
		owned, err := pickFields(live.Object, fields)
		return err == nil && reflect.DeepEqual(owned, any(wanted.Object))
	}
	return false
}

// pickFields returns the part of value that a set of managed fields names.
func pickFields(value any, fields map[string]any) (any, error) {
	if len(fields) == 0 {
		return value, nil
	}
	switch value := value.(type) {
	case map[string]any:
		return pickFromMap(value, fields)
	case []any:
		return pickFromList(value, fields)
	default:
		return nil, fmt.Errorf("managed fields lie below a %T", value)
	}
}

func pickFromMap(value, fields map[string]any) (any, error) {
	picked := map[string]any{}
	for path, below := range fields {
		name, isField := strings.CutPrefix(path, "f:")
		if !isField {
			continue // ".": the map itself
		}
		inner, err := pickBelow(value[name], below)
		if err != nil {
			return nil, err
		}
		picked[name] = inner
	}
	return picked, nil
}

// pickFromList keeps the list's own order.
func pickFromList(list []any, fields map[string]any) (any, error) {
	picked := []any{}
	for i, item := range list {
		below, named, err := fieldsOfItem(i, item, fields)
		if err != nil {
			return nil, err
		}
		if !named {
			continue
		}
		inner, err := pickBelow(item, below)
		if err != nil {
			return nil, err
		}
		picked = append(picked, inner)
	}
	return picked, nil
}

func pickBelow(value, below any) (any, error) {
	fields, ok := below.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("managed fields hold a %T", below)
	}
	return pickFields(value, fields)
}

// fieldsOfItem returns what fields say of one item of a list: by its keys, its
// value or its place.
func fieldsOfItem(index int, item any, fields map[string]any) (any, bool, error) {
	for path, below := range fields {
		kind, text, _ := strings.Cut(path, ":")
		switch kind {
		case "k":
			keys := map[string]any{}
			if err := json.Unmarshal([]byte(text), &keys); err != nil {
				return nil, false, fmt.Errorf("read the managed field %s: %w", path, err)
			}
			if object, ok := item.(map[string]any); ok && hasKeys(object, keys) {
				return below, true, nil
			}
		case "v":
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				return nil, false, fmt.Errorf("read the managed field %s: %w", path, err)
			}
			if fmt.Sprint(value) == fmt.Sprint(item) {
				return below, true, nil
			}
		case "i":
			if text == fmt.Sprint(index) {
				return below, true, nil
			}
		}
	}
	return nil, false, nil
}

// hasKeys compares as text, since numbers come as one type from JSON here and as
// another in objects.
func hasKeys(object, keys map[string]any) bool {
	for name, want := range keys {
		if have, ok := object[name]; !ok || fmt.Sprint(have) != fmt.Sprint(want) {
			return false
		}
	}
	return true
}
