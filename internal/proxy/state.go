package proxy

import (
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
)

// served is what the proxy serves under one document. It does not change.
type served struct {
	doc    *muxconfig.Document
	stores stores
	// ladders are the fallback backends.
	ladders ladders
	// mux is nil while the root has too few members.
	mux         *muxengine.Mux
	generations generations
	members     []place
}

// place is one member of the tree.
type place struct {
	path   string
	member *muxconfig.Member
	// backend or mux is the resource behind the member.
	backend *muxconfig.Backend
	mux     *muxconfig.Mux
	// spread says that the member's mux has that keyspace.
	spread bool
	// readOnlySince is the generation from which on the member takes no
	// writes, 0 while it does.
	readOnlySince int
}

func (p *place) uid() string {
	if p.backend != nil {
		return p.backend.UID
	}
	return p.mux.UID
}

func (p *place) id() string { return memberID(p.path, p.uid()) }

func (p *place) readOnly() bool {
	return p.member.Drain != nil && p.member.Drain.Phase == muxconfig.DrainReadOnly
}

// places lists the members of a valid document, parents before children.
// before is what was served until now, and generation the number of what is
// served from now on.
func places(doc *muxconfig.Document, before *served, generation int) []place {
	since := map[string]int{}
	if before != nil {
		for i := range before.members {
			if p := &before.members[i]; p.readOnly() {
				since[p.id()] = p.readOnlySince
			}
		}
	}
	var list []place
	_ = muxconfig.Walk(doc, func(path string, parent *muxconfig.Mux, member *muxconfig.Member) {
		p := place{
			path: path, member: member, spread: parent.Keyspace == muxconfig.KeyspaceSpread,
			backend: doc.Backend(member.Backend), mux: doc.Mux(member.Mux),
		}
		if p.readOnly() {
			p.readOnlySince = generation
			if n, ok := since[p.id()]; ok {
				p.readOnlySince = n
			}
		}
		list = append(list, p)
	})
	return list
}
