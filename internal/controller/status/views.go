package status

import (
	"cmp"
	"slices"
	"strings"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// view is what one proxy sees of a mux: of its own mux, or of one that is
// nested in it, maybe at several places. It is empty for a proxy that has not
// told lately.
type view struct {
	// members are the reports by their path within the mux.
	members map[string][]*muxconfig.MemberReport
	totals  []*muxconfig.Totals
}

// views returns one view for each proxy that serves the mux.
func (b *muxBuilder) views() []view {
	var views []view
	for _, p := range b.replicas {
		v := view{}
		if p.heard() {
			v.add(p.Report, "")
			v.totals = append(v.totals, &p.Report.Totals)
		}
		views = append(views, v)
	}
	for _, p := range b.above {
		if v, serves := viewFromAbove(p, string(b.Mux.UID)); serves {
			views = append(views, v)
		}
	}
	return views
}

// viewFromAbove reports false for a proxy that does not have the mux.
func viewFromAbove(p Proxy, uid string) (view, bool) {
	v := view{}
	if !p.heard() {
		return v, true
	}
	for i := range p.Report.Members {
		if m := &p.Report.Members[i]; m.Mux != "" && m.UID == uid {
			v.add(p.Report, m.Path+"/")
			if m.Totals != nil {
				v.totals = append(v.totals, m.Totals)
			}
		}
	}
	return v, v.members != nil
}

// add takes in the members of a report whose path begins with prefix.
func (v *view) add(report *muxconfig.Report, prefix string) {
	if v.members == nil {
		v.members = make(map[string][]*muxconfig.MemberReport, len(report.Members))
	}
	for i := range report.Members {
		m := &report.Members[i]
		if path, ok := strings.CutPrefix(m.Path, prefix); ok {
			v.members[path] = append(v.members[path], m)
		}
	}
}

// seenAt returns what each proxy says of the member at path.
func seenAt(views []view, path, uid string) [][]*muxconfig.MemberReport {
	seen := make([][]*muxconfig.MemberReport, len(views))
	for i := range views {
		for _, m := range views[i].members[path] {
			if m.UID == uid {
				seen[i] = append(seen[i], m)
			}
		}
	}
	return seen
}

// addTotals returns nil where no proxy has told.
func addTotals(views []view) *v1alpha1.MuxTotals {
	var sum *v1alpha1.MuxTotals
	for i := range views {
		for _, t := range views[i].totals {
			if sum == nil {
				sum = &v1alpha1.MuxTotals{}
			}
			sum.Calls += max(t.Calls, 0)
			sum.Failovers += max(t.Failovers, 0)
			sum.FanoutPartials += max(t.FanoutPartials, 0)
		}
	}
	return sum
}

// placed is a report and its member's path within the mux.
type placed struct {
	path   string
	report *muxconfig.MemberReport
}

// leftIn returns one report for each path that is reported and not in shown, by
// path.
func leftIn(views []view, shown map[string]bool) []placed {
	found := map[string]*muxconfig.MemberReport{}
	for i := range views {
		for path, reports := range views[i].members {
			if !shown[path] && (found[path] == nil || found[path].UID > reports[0].UID) {
				found[path] = reports[0]
			}
		}
	}
	list := make([]placed, 0, len(found))
	for path, report := range found {
		list = append(list, placed{path, report})
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.path, b.path) })
	return list
}
