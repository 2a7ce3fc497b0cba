package muxconfig

import (
	"fmt"
	"strings"
)

// Visit is called by Walk for each member at each depth. Path is the names of
// the members from the root's down to this one, joined by "/".
type Visit func(path string, parent *Mux, member *Member)

// Walk visits every member of the topology under d.Root, parents before
// children and in list order. It fails on a reference to nothing, a cycle, a
// path of more than MaxDepth muxes and more than MaxMembers members.
func Walk(d *Document, visit Visit) error {
	w := walker{doc: d, visit: visit}
	return w.mux(d.Root, "", nil)
}

type walker struct {
	doc     *Document
	visit   Visit
	members int
}

func (w *walker) mux(name, path string, chain []string) error {
	mux := w.doc.Mux(name)
	if mux == nil {
		return invalid("muxes", "no mux is named %q", name)
	}
	for _, above := range chain {
		if above == name {
			return invalid("muxes", "a mux must not contain itself: %s", strings.Join(append(chain, name), " -> "))
		}
	}
	chain = append(chain[:len(chain):len(chain)], name)
	if len(chain) > MaxDepth {
		return invalid("muxes", "muxes must not be nested deeper than %d: %s", MaxDepth, strings.Join(chain, " -> "))
	}
	for i := range mux.Members {
		member := &mux.Members[i]
		if w.members++; w.members > MaxMembers {
			return invalid("muxes", "the topology must have at most %d members", MaxMembers)
		}
		memberPath := JoinPath(path, member.Name)
		if w.visit != nil {
			w.visit(memberPath, mux, member)
		}
		if err := w.below(mux, member, memberPath, chain); err != nil {
			return err
		}
	}
	return nil
}

// below goes on from a member to what it leads into.
func (w *walker) below(mux *Mux, member *Member, path string, chain []string) error {
	if member.Mux != "" {
		return w.mux(member.Mux, path, chain)
	}
	b := w.doc.Backend(member.Backend)
	switch {
	case b == nil:
		return invalid(fmt.Sprintf("muxes[%s].members[%s]", mux.Name, member.Name), "no backend is named %q", member.Backend)
	case b.Fallback != nil:
		return w.mux(LadderName(b.Name), path, chain)
	}
	return nil
}

// JoinPath appends a member's name to its parent's path.
func JoinPath(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "/" + name
}
