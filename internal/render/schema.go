package render

import (
	"fmt"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// schemaFor is the schema that every proxy of the mux reads: the newest, or one
// that is older while an older proxy runs. It rises only on what proxies say.
func schemaFor(f Facts) int {
	schema, told := muxconfig.SchemaVersion, false
	for _, p := range f.Proxies {
		switch {
		case p.Report != nil:
			schema, told = min(schema, p.Report.MaxSchema), true
		case p.Running && f.Stored != nil:
			schema = min(schema, f.Stored.Schema)
		}
	}
	if !told && f.Stored != nil {
		schema = f.Stored.Schema
	}
	return max(schema, muxconfig.MinSchemaVersion)
}

// tooOld says what doc holds that its schema, and so some proxy, does not know,
// nil if nothing.
func tooOld(f Facts, doc *muxconfig.Document) *Verdict {
	needed, field := muxconfig.NeedsSchema(doc)
	if needed <= doc.Schema {
		return nil
	}
	v := refuse(v1alpha1.ReasonProxyTooOld, "%s needs proxies that read configurations of version %d, and %s", field, needed, oldest(f, needed))
	return &v
}

func oldest(f Facts, needed int) string {
	for _, p := range f.Proxies {
		if p.Report != nil && p.Report.MaxSchema < needed {
			return fmt.Sprintf("pod %s reads up to version %d", p.Pod, p.Report.MaxSchema)
		}
	}
	return "no proxy has told that it does"
}
