package muxconfig

import (
	"strings"
	"testing"
)

func TestADocumentSaysTheOldestSchemaThatCanExpressIt(t *testing.T) {
	old := validDocument()
	if version, field := NeedsSchema(old); version != 1 || field != "" {
		t.Errorf("needs version %d for %q, want 1", version, field)
	}
	old.Schema = 1
	if _, err := Decode(mustEncode(t, old)); err != nil {
		t.Errorf("a document of the schema before: %v", err)
	}

	newer := validDocument()
	newer.Backends[0].S3, newer.Backends[0].File, newer.Backends[0].Memory = nil, nil, nil
	if version, field := NeedsSchema(newer); version != 2 || !strings.Contains(field, newer.Backends[0].Name) {
		t.Errorf("needs version %d for %q, want 2 for %s", version, field, newer.Backends[0].Name)
	}
	newer.Schema = 1
	if err := validateSchema(newer); err == nil || !strings.Contains(err.Error(), "schema: must be at least 2") {
		t.Errorf("a document that its schema does not know: %v", err)
	}
}
