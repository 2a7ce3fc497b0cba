package muxengine

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// versionKey is the metadata under which a write through a mux with several
// leaves keeps its version. Clients never see it.
const versionKey = storage.VersionMetadata

// newVersion returns a version above all that this mux gave before: the time in
// nanoseconds, pushed on where it stands still, and a nonce that keeps two
// proxies apart. Versions compare as strings.
func (m *Mux) newVersion() string {
	clock := &m.core.clock
	for {
		last := clock.Load()
		next := max(time.Now().UnixNano(), last+1)
		if clock.CompareAndSwap(last, next) {
			return fmt.Sprintf("%016x-%08x", uint64(next), uint32(m.rand()))
		}
	}
}

// withVersion returns metadata with the version in it, in a copy.
func withVersion(metadata map[string]string, version string) map[string]string {
	if _, has := metadata[versionKey]; !has && version == "" {
		return metadata
	}
	clone := make(map[string]string, len(metadata)+1)
	maps.Copy(clone, metadata)
	delete(clone, versionKey)
	if version != "" {
		clone[versionKey] = version
	}
	return clone
}

// giveVersion gives the write the version that it is to have, if any.
func (m *Mux) giveVersion(n *node, req *request) {
	switch {
	case m.opts.PassVersions:
		req.version = req.set.Metadata[versionKey]
	case n.leaves > 1:
		req.version = m.newVersion()
	}
	req.set.Metadata = withVersion(req.set.Metadata, req.version)
}

// hide moves the version out of the metadata, which a client sees.
func (m *Mux) hide(info *storage.Info) {
	if m.opts.PassVersions {
		return
	}
	if version := info.Metadata[versionKey]; version != "" {
		info.Version = version
	}
	info.Metadata = withVersion(info.Metadata, "")
}

// identityOf is what tells one object from another under the same key.
type identityOf struct {
	version string
	// etag is strong and computed from the content, or empty.
	etag string
	size int64
}

func identify(info *storage.Info, caps storage.Capabilities) identityOf {
	id := identityOf{version: info.Metadata[versionKey], size: info.Size}
	if caps.Identity == storage.IdentityNative && storage.StrongTag(info.ETag) {
		id.etag = info.ETag
	}
	return id
}

// strong reports whether there is anything to tell the object by.
func (o identityOf) strong() bool { return o.version != "" || o.etag != "" }

// same reports whether both are the same object: the same write through a mux,
// or, where another client wrote it, the same entity tag. Tags that tell of the
// content must not contradict: a later SetPartial may have missed one of two.
func (o identityOf) same(other identityOf) bool {
	switch {
	case o.size != other.size, o.version != other.version:
		return false
	case o.etag != "" && other.etag != "":
		return o.etag == other.etag
	default:
		return o.version != ""
	}
}

// resume opens the rest of the object that r names, if s holds that object.
func resume(ctx context.Context, s storage.Storage, r *request) (*storage.Object, error) {
	info, err := s.Stat(ctx, r.key, storage.StatOptions{})
	if err != nil {
		return nil, err
	}
	differs := storage.Errorf(storage.CodePreconditionFailed, "GetStream", "the backend holds another version of the object")
	if !r.same.same(identify(&info, s.Capabilities())) {
		return nil, differs
	}
	opts := r.get
	if info.ETag != "" {
		opts.Conditions = storage.Conditions{IfMatch: []string{info.ETag}}
	}
	obj, err := s.GetStream(ctx, r.key, opts)
	if err != nil {
		return nil, err
	}
	first, last := r.get.Range.First, r.get.Range.Last
	if !r.same.same(identify(&obj.Info, s.Capabilities())) || obj.Offset != first || obj.Length != last-first+1 {
		_ = obj.Body.Close()
		return nil, differs
	}
	return obj, nil
}

// findTimeout is how long the engine looks for a write whose outcome is unknown.
const findTimeout = 5 * time.Second

// find looks whether the write of a, which ended without an answer, was done.
func (a *attempt) find() (storage.Info, bool) {
	if a.req.version == "" {
		return storage.Info{}, false
	}
	ctx, cancel := context.WithTimeout(a.call.ctx, min(findTimeout, a.m.timeout))
	defer cancel()
	var info storage.Info
	err := a.m.apart(ctx, func(ctx context.Context) (err error) {
		info, err = a.m.leaf.Stat(ctx, a.req.key, storage.StatOptions{})
		return err
	})
	if err != nil {
		return storage.Info{}, false
	}
	return info, info.Metadata[versionKey] == a.req.version
}
