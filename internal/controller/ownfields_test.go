package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const appliedService = `
apiVersion: v1
kind: Service
metadata:
  name: s
  namespace: ns
  uid: u
  labels: {app: x}
  annotations: {theirs: kept}
  managedFields:
  - manager: somebody
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:metadata": {"f:annotations": {".": {}, "f:theirs": {}}}}
  - manager: storagemux
    operation: Apply
    subresource: status
    fieldsType: FieldsV1
    fieldsV1: {"f:status": {}}
  - manager: storagemux
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {"f:labels": {"f:app": {}}, "f:finalizers": {".": {}, "v:\"one\"": {}}}
      f:spec:
        f:selector: {}
        f:ports:
          'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}
  finalizers: [other, one]
spec:
  selector: {app: x}
  type: ClusterIP
  ports:
  - {port: 81, protocol: TCP, name: theirs}
  - {port: 80, protocol: TCP, name: s3, targetPort: 80}
`

const wantedService = `
apiVersion: v1
kind: Service
metadata: {name: s, namespace: ns, labels: {app: x}, finalizers: [one]}
spec: {selector: {app: x}, ports: [{port: 80, name: s3}]}
`

func TestOnlyWhatWouldChangeSomethingIsApplied(t *testing.T) {
	for name, test := range map[string]struct {
		live, intent func(map[string]any)
		want         bool
	}{
		"as it was applied":              {want: true},
		"others have more":               {want: true, live: set(true, "metadata", "annotations", "more")},
		"a value is another":             {live: set("y", "metadata", "labels", "app")},
		"an atomic map is another":       {live: set("y", "spec", "selector", "app")},
		"more is wanted":                 {intent: set("LoadBalancer", "spec", "type")},
		"less is wanted":                 {intent: drop("spec", "selector")},
		"a label less is wanted":         {intent: drop("metadata", "labels", "app")},
		"an item of a list is gone":      {live: set([]any{}, "spec", "ports")},
		"an item of a set is gone":       {live: set([]any{"other"}, "metadata", "finalizers")},
		"a field was taken out":          {live: drop("metadata", "labels", "app")},
		"it was never applied":           {live: drop("metadata", "managedFields")},
		"a field is owned by others":     {live: set([]any{entry("storagemux", "Apply", `{"f:metadata": {"f:labels": {"f:app": {}}}}`)}, "metadata", "managedFields")},
		"it was applied by others":       {live: set([]any{entry("somebody", "Apply", `{"f:spec": {}}`)}, "metadata", "managedFields")},
		"managed fields make no sense":   {live: set([]any{entry("storagemux", "Apply", `{"f:spec": {"f:type": {"f:x": {}}}}`)}, "metadata", "managedFields")},
		"managed fields make less still": {live: set([]any{entry("storagemux", "Apply", `{"f:spec": 1}`)}, "metadata", "managedFields")},
	} {
		t.Run(name, func(t *testing.T) {
			live, intent := object(t, appliedService), object(t, wantedService)
			if test.live != nil {
				test.live(live.Object)
			}
			if test.intent != nil {
				test.intent(intent.Object)
			}
			if got := fulfils(live, intent, "storagemux"); got != test.want {
				t.Errorf("fulfils is %t, want %t", got, test.want)
			}
		})
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

func set(value any, path ...string) func(map[string]any) {
	return func(o map[string]any) { _ = unstructured.SetNestedField(o, value, path...) }
}

func drop(path ...string) func(map[string]any) {
	return func(o map[string]any) { unstructured.RemoveNestedField(o, path...) }
}

func entry(manager, operation, fields string) map[string]any {
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(fields), &parsed); err != nil {
		panic(err)
	}
	return map[string]any{"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": parsed}
}
