package muxengine

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

var _ storage.Multipart = (*Mux)(nil)

// uploadRequest is what requests about uploads need besides a key.
type uploadRequest struct {
	id     uploadID
	number int
	// parts are those of CompleteUpload, with the tags that clients know.
	parts        []storage.Part
	after, limit int
	uploads      storage.ListUploadsOptions
}

// uploadReply is what they are answered. Tags of parts stay apart by leaf until
// the outermost mux has all of them.
type uploadReply struct {
	created []leafUpload
	part    taggedPart
	parts   []taggedPart
	more    bool
	uploads storage.UploadPage
}

type taggedPart struct {
	storage.Part
	tags partTags
}

// CreateUpload implements storage.Multipart. A mode that walks keeps the upload
// with the member that was chosen now; one that fans out begins it on all.
func (m *Mux) CreateUpload(ctx context.Context, key string, opts storage.SetOptions) (string, error) {
	n := m.node.Load()
	if err := n.takesParts(); err != nil {
		return "", err
	}
	req := &request{op: opCreateUpload, key: key, set: &opts, upload: &uploadRequest{}}
	if err := n.refuseTags(req.op, req.set); err != nil {
		return "", err
	}
	m.giveVersion(n, req)
	rep, err := n.do(ctx, req, nil)
	if err != nil {
		return "", err
	}
	id := uploadID{Version: req.version, Leaves: rep.upload.created}
	encoded, err := id.encode()
	if err != nil {
		// Nobody could ever go on with it.
		_, _ = n.do(ctx, &request{op: opAbortUpload, key: key, upload: &uploadRequest{id: id}}, nil)
	}
	return encoded, err
}

// UploadPart implements storage.Multipart. Of a fan-out, a member that misses a
// part is left out when the upload is completed.
func (m *Mux) UploadPart(ctx context.Context, key, upload string, number int, body storage.Body, opts storage.SetOptions) (storage.Part, error) {
	n := m.node.Load()
	kept := newContent(body, m.opts.Spool)
	defer kept.close()
	req := &request{op: opUploadPart, key: key, set: &opts, body: kept, upload: &uploadRequest{number: number}}
	req.nameSource(n)
	rep, err := n.continueUpload(ctx, upload, req)
	if err != nil {
		return storage.Part{}, err
	}
	return rep.upload.part.clients(), nil
}

// CompleteUpload implements storage.Multipart. Of a fan-out, each member's parts
// are compared with what the client names; those that differ are left out.
func (m *Mux) CompleteUpload(ctx context.Context, key, upload string, parts []storage.Part, opts storage.SetOptions) (storage.Info, error) {
	n := m.node.Load()
	rep, err := n.continueUpload(ctx, upload, &request{
		op: opCompleteUpload, key: key, set: &opts, upload: &uploadRequest{parts: parts},
	})
	m.hide(&rep.info)
	return rep.info, err
}

// AbortUpload implements storage.Multipart.
func (m *Mux) AbortUpload(ctx context.Context, key, upload string) error {
	_, err := m.node.Load().continueUpload(ctx, upload, &request{op: opAbortUpload, key: key, upload: &uploadRequest{}})
	return err
}

// ListParts implements storage.Multipart.
func (m *Mux) ListParts(ctx context.Context, key, upload string, after, limit int) ([]storage.Part, bool, error) {
	rep, err := m.node.Load().continueUpload(ctx, upload, &request{
		op: opListParts, key: key, upload: &uploadRequest{after: after, limit: limit},
	})
	if err != nil {
		return nil, false, err
	}
	parts := make([]storage.Part, len(rep.upload.parts))
	for i := range parts {
		parts[i] = rep.upload.parts[i].clients()
	}
	return parts, rep.upload.more, nil
}

func (p *taggedPart) clients() storage.Part {
	part := p.Part
	part.ETag = p.tags.encode()
	return part
}

// takesParts returns why uploads in parts cannot be taken, if so: every leaf must
// take them, or a write would mean another thing from one member to the next.
func (n *node) takesParts() error {
	if n.multipart {
		return nil
	}
	e := storage.Errorf(storage.CodeUnsupported, "CreateUpload", "not every backend takes uploads in parts")
	e.Mode = string(n.cfg.Mode)
	return e
}

// continueUpload makes a request about the upload that id names.
func (n *node) continueUpload(ctx context.Context, id string, req *request) (reply, error) {
	if err := n.takesParts(); err != nil {
		return reply{}, err
	}
	decoded, err := decodeUploadID(id)
	if err != nil {
		return reply{}, err
	}
	req.upload.id, req.version = decoded, decoded.Version
	return n.do(ctx, req, nil)
}

// executeUpload executes a request about an upload that has begun: the members
// that it began on are asked, and no others.
func (c *call) executeUpload() (reply, error) {
	n, id := c.node, &c.req.upload.id
	if c.req.conditional() && n.spread() {
		return reply{}, unconditionalOnly(c.req.op)
	}
	var members []*member
	var left []outcome
	for _, m := range n.members {
		if id.covers(m) {
			members = append(members, m)
		} else if c.req.op == opCompleteUpload && m.state.open(opSet) {
			left = append(left, outcome{m: m, skipped: true, err: c.isDown(m, c.req.op, 0, 0)})
		}
	}
	fansOut := n.mode.write == fanOut
	switch {
	case len(members) == 0, n.mode.originDecides && members[0].index != 0:
		return reply{}, noUpload("the backend that the upload began on is gone")
	case c.req.op == opListParts:
		return c.listParts(members)
	case len(members) == 1 && !fansOut:
		return c.pinnedTo(members[0])
	case !fansOut:
		left = nil
	}
	rep, err := c.verdictOf(append(c.writeAll(members), left...))
	if err == nil && n.spread() && c.req.op == opCompleteUpload {
		c.removeCopies()
	}
	return rep, err
}

// pinnedTo makes the request of the one member that has the upload.
func (c *call) pinnedTo(m *member) (reply, error) {
	c.forced = c.node.cfg.Health.WhenAllDown == WhenAllDownTry
	c.attempts = 1
	out := c.askOne(m, &c.req, 0, 1, nil)
	switch {
	case out.err == nil:
		c.winner = m
		if c.node.spread() && c.req.op == opCompleteUpload {
			c.removeCopies()
		}
		return out.rep, nil
	case c.ctx.Err() != nil:
		return reply{}, c.aborted()
	case storage.Classify(out.err) != storage.ClassTransient, storage.CodeOf(out.err) == storage.CodeThrottled:
		return reply{}, out.err
	case outcomeOf(out.err) == storage.OutcomeUnknown && c.req.op == opCompleteUpload:
		return reply{}, c.unknown(out.err)
	}
	c.last = out.err
	return reply{}, c.allDown("the backend that the upload began on cannot be reached")
}

// listParts merges what the members hold: a part is listed if any of them has it.
func (c *call) listParts(members []*member) (reply, error) {
	outcomes := c.askAll(members, &c.req, nil)
	merged := &uploadReply{}
	ok := false
	for _, o := range outcomes {
		if o.err == nil {
			ok = true
			merged.parts = mergeParts(merged.parts, o.rep.upload.parts)
			merged.more = merged.more || o.rep.upload.more
		}
	}
	if !ok {
		return reply{}, c.refusal(outcomes)
	}
	if limit := c.req.upload.limit; len(merged.parts) > limit {
		merged.parts, merged.more = merged.parts[:limit], true
	}
	return reply{upload: merged}, nil
}

// mergeParts merges two lists that ascend by number.
func mergeParts(a, b []taggedPart) []taggedPart {
	merged := make([]taggedPart, 0, max(len(a), len(b)))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Number < b[0].Number:
			merged, a = append(merged, a[0]), a[1:]
		case len(a) == 0 || b[0].Number < a[0].Number:
			merged, b = append(merged, b[0]), b[1:]
		default:
			a[0].tags.merge(b[0].tags)
			merged, a, b = append(merged, a[0]), a[1:], b[1:]
		}
	}
	return merged
}

// joinUploads makes one reply of those of a fan-out's members.
func joinUploads(first reply, outcomes []outcome) reply {
	if first.upload == nil {
		return first
	}
	joined := *first.upload
	joined.created = nil
	for _, o := range outcomes {
		if o.err != nil {
			continue
		}
		joined.created = append(joined.created, o.rep.upload.created...)
		if joined.part.tags != nil {
			joined.part.tags.merge(o.rep.upload.part.tags)
		}
	}
	first.upload = &joined
	return first
}

// callUpload makes the request of a leaf.
func (a *attempt) callUpload(ctx context.Context, body storage.Body) (reply, error) {
	s, ok := a.m.storage().(storage.Multipart)
	if !ok {
		return reply{}, storage.Errorf(storage.CodeUnsupported, a.req.op.String(), "the backend takes no uploads in parts")
	}
	ctx = storage.WithProgress(ctx, a.moved)
	r, up := a.req, a.req.upload
	key := a.m.leafKey()
	position := up.id.position(key)
	if r.op != opCreateUpload && r.op != opListUploads && position < 0 {
		return reply{}, noUpload("the upload did not begin on this backend")
	}
	switch r.op {
	case opCreateUpload:
		id, err := s.CreateUpload(ctx, r.key, *r.set)
		return reply{upload: &uploadReply{created: []leafUpload{{key, id}}}}, err
	case opUploadPart:
		part, err := s.UploadPart(ctx, r.key, up.id.Leaves[position].ID, up.number, body, *r.set)
		return reply{upload: &uploadReply{part: up.tagged(part, position)}}, err
	case opCompleteUpload:
		info, err := a.completeLeaf(ctx, s, position)
		return reply{info: info, upload: &uploadReply{}}, err
	case opAbortUpload:
		return reply{upload: &uploadReply{}}, s.AbortUpload(ctx, r.key, up.id.Leaves[position].ID)
	case opListParts:
		parts, more, err := s.ListParts(ctx, r.key, up.id.Leaves[position].ID, up.after, up.limit)
		rep := &uploadReply{more: more}
		for _, part := range parts {
			rep.parts = append(rep.parts, up.tagged(part, position))
		}
		return reply{upload: rep}, err
	default:
		page, err := a.listUploadsOf(ctx, s, key)
		return reply{upload: &uploadReply{uploads: page}}, err
	}
}

func (up *uploadRequest) tagged(part storage.Part, position int) taggedPart {
	tags := make(partTags, len(up.id.Leaves))
	tags[position] = part.ETag
	return taggedPart{part, tags}
}

// completeLeaf completes the upload of one leaf with the parts that it holds. An
// upload that is gone because it was completed before succeeds again.
func (a *attempt) completeLeaf(ctx context.Context, s storage.Multipart, position int) (storage.Info, error) {
	r, up := a.req, a.req.upload
	id := up.id.Leaves[position].ID
	parts, err := up.partsOf(ctx, s, r.key, id, position)
	var info storage.Info
	if err == nil {
		info, err = s.CompleteUpload(ctx, r.key, id, parts, *r.set)
	}
	if storage.CodeOf(err) == storage.CodeUploadNotFound && r.version != "" {
		if done, statErr := a.m.storage().Stat(ctx, r.key, storage.StatOptions{}); statErr == nil && done.Metadata[versionKey] == r.version {
			return done, nil
		}
	}
	if err == nil && info.Metadata[versionKey] == "" && r.version != "" && a.m.caps.Metadata {
		info.Version = r.version
	}
	return info, err
}

// partsOf returns the parts that the client names with the tags that the leaf
// gave them. INVALID_PART says that the leaf holds another part, or none.
func (up *uploadRequest) partsOf(ctx context.Context, s storage.Multipart, key, id string, position int) ([]storage.Part, error) {
	if len(up.id.Leaves) == 1 {
		return up.parts, nil
	}
	own := map[int]string{}
	for after, more := 0, true; more; {
		var page []storage.Part
		var err error
		if page, more, err = s.ListParts(ctx, key, id, after, storage.MaxListLimit); err != nil {
			return nil, err
		}
		if len(page) == 0 || page[len(page)-1].Number <= after {
			break
		}
		for _, part := range page {
			own[part.Number] = part.ETag
		}
		after = page[len(page)-1].Number
	}
	parts := make([]storage.Part, len(up.parts))
	for i, part := range up.parts {
		if !holds(part.ETag, position, len(up.id.Leaves), own[part.Number]) {
			return nil, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "part %d is not the one that was named", part.Number)
		}
		part.ETag = own[part.Number]
		parts[i] = part
	}
	return parts, nil
}
