package muxengine

import (
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// copyRate is what a store that copies inside itself does at least in a second.
// It gives no sign of life until it is done.
const copyRate = 16 << 20

// nameSource notes which object a write says that it copies, as the node n
// described it.
func (r *request) nameSource(n *node) {
	from := r.set.CopyOf
	if from == nil {
		return
	}
	same := identify(&from.Source, n.caps)
	if from.Source.Version != "" {
		same.version = from.Source.Version
	}
	if same.strong() {
		r.same = &same
	}
}

// copyInside makes the write of a leaf that holds the very object whose content
// is written, and can copy it. It reports false where the body has to be sent
// after all: what the leaf refuses in this form it may take in the other, or
// refuses for good.
//
// A write under a condition is sent, since a copy under one would have another
// entity tag; so is one onto itself, which servers do in place and not at once.
func (a *attempt) copyInside() (rep reply, done bool, err error) {
	r := a.req
	leaf, can := a.m.leaf.(storage.Copier)
	if !can || r.same == nil || !r.op.carriesBody() || !r.set.Conditions.IsZero() || r.set.CopyOf.Source.Key == r.key {
		return reply{}, false, nil
	}
	a.beginCopy()
	if r.op == opSet {
		rep.info, err = leaf.CopyObject(a.ctx, r.key, r.set.CopyOf.Source.Key, storage.CopyOptions{
			Same: a.holdsSource, Replace: true, Headers: r.set.Headers, Metadata: r.set.Metadata, Tags: r.set.Tags,
		})
	} else {
		rep, err = a.copyPart(leaf)
	}
	done = err == nil || storage.Classify(err) != storage.ClassSemantic
	a.endCopy(done)
	return rep, done, err
}

// copyPart makes a part of an upload.
func (a *attempt) copyPart(leaf storage.Copier) (reply, error) {
	r, up := a.req, a.req.upload
	position := up.id.position(a.m.leafKey())
	if position < 0 {
		return reply{}, noUpload("the upload did not begin on this backend")
	}
	from := r.set.CopyOf
	part, err := leaf.UploadPartCopy(a.ctx, r.key, up.id.Leaves[position].ID, up.number, from.Source.Key,
		storage.CopyPartOptions{Same: a.holdsSource, Range: from.Range})
	return reply{upload: &uploadReply{part: up.tagged(part, position)}}, err
}

// holdsSource reports whether what the leaf holds is what is to be copied.
func (a *attempt) holdsSource(info storage.Info) bool {
	return a.req.same.same(identify(&info, a.m.caps))
}

// beginCopy gives the leaf time for all of it. To the pacer it is like one that
// waits for the client.
func (a *attempt) beginCopy() {
	a.copying.Store(true)
	a.asks(a.call.node.mux.now())
	if a.timer != nil && a.ctx.Err() == nil {
		a.timer.Reset(a.m.timeout + time.Duration(a.req.body.Size()/copyRate)*time.Second)
	}
}

// endCopy says whether the leaf has done with the content, or is to get it now.
func (a *attempt) endCopy(done bool) {
	now := a.call.node.mux.now()
	a.takes(0, now-a.pace.asking.Load(), done)
	if !done {
		a.copying.Store(false)
		a.moved()
	}
}
