package http

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/tree"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

const (
	cleanUpTimeout = 10 * time.Second
	// expectFrom is the size from which the server is asked first whether it
	// would take the body.
	expectFrom = 1 << 20
	// maxListBody bounds what is read of the listing of one folder.
	maxListBody = 256 << 20
)

// SetStream implements storage.Storage. A PUT that is cut may well become
// visible, so it goes to a temporary file, and what makes that the object is a
// MOVE after the server has confirmed all of it.
func (s *Storage) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	if err := s.storable(op, key); err != nil {
		return storage.Info{}, err
	}
	if !opts.Conditions.IsZero() {
		return storage.Info{}, storage.Errorf(storage.CodeUnsupported, op, "WebDAV servers do not keep to conditions of writes")
	}
	if err := storage.RefuseTags(op, opts.Tags); err != nil {
		return storage.Info{}, err
	}
	r, err := storage.OpenBody(ctx, op, body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	s.maybeSweep()
	tmp := storage.ReservedTmp + rand.Text()
	moved := false
	defer func() {
		if !moved {
			s.background.Go(func() { s.discard(tmp) })
		}
	}()
	if err := s.put(ctx, op, tmp, r, body.Size(), opts); err != nil {
		return storage.Info{}, err
	}
	if err := s.move(ctx, op, tmp, key); err != nil {
		e, is := errors.AsType[*storage.Error](err)
		moved = is && e.Outcome == storage.OutcomeUnknown
		return storage.Info{}, err
	}
	moved = true
	return storage.Info{Key: key, Size: r.BytesRead(), Headers: storage.Headers{ContentType: opts.Headers.ContentType}}, nil
}

// put stores what r yields under tmp.
func (s *Storage) put(ctx context.Context, op, tmp string, r *storage.Reader, size int64, opts storage.SetOptions) error {
	if !s.tmpMade.Load() {
		if err := s.makeFolders(ctx, op, tmp); err != nil {
			return err
		}
		s.tmpMade.Store(true)
	}
	header := http.Header{}
	if opts.Headers.ContentType != "" {
		header.Set("Content-Type", opts.Headers.ContentType)
	}
	if size > expectFrom || size < 0 {
		header.Set("Expect", "100-continue")
	}
	content := &wire.Content{Length: size, Body: r}
	sendCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := s.send(sendCtx, &request{op: op, method: http.MethodPut, path: tmp, header: header, content: content, source: r})
	if err != nil {
		s.tmpMade.Store(false) // it may be gone
		cancel()
		_ = r.Close()
	} else {
		wire.Drain(resp)
	}
	content.Wait()
	if size == 0 && err == nil {
		_, err = io.Copy(io.Discard, r) // the transport does not look whether it ends
	}
	if r.Err() != nil {
		return r.Err()
	}
	if ctx.Err() != nil {
		return storage.Interrupted(ctx, op, "storing the object")
	}
	return err
}

// move makes tmp the object under key.
func (s *Storage) move(ctx context.Context, op, tmp, key string) error {
	if err := s.noFolder(ctx, op, key); err != nil {
		return err
	}
	request := func() *request {
		return &request{op: op, method: "MOVE", path: tmp, write: true, header: http.Header{
			"Destination": {s.url(key).String()}, "Overwrite": {"T"},
		}}
	}
	resp, err := s.send(ctx, request())
	if e, is := errors.AsType[*storage.Error](err); is && (e.Status == http.StatusConflict || e.Status == http.StatusNotFound ||
		e.Status == http.StatusForbidden || e.Status == http.StatusInternalServerError) {
		// The folder may be missing; servers say that in different ways.
		if err := s.makeFolders(ctx, op, key); err != nil {
			return err
		}
		resp, err = s.send(ctx, request())
	}
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}

// noFolder returns an error if key is a folder: a MOVE onto one would remove it
// with all that is in it.
func (s *Storage) noFolder(ctx context.Context, op, key string) error {
	entries, err := s.propfind(ctx, op, key, "0")
	switch {
	case storage.CodeOf(err) == storage.CodeKeyNotFound:
		return nil
	case err != nil:
		return err
	case len(entries) > 0 && entries[0].folder:
		return storage.Errorf(storage.CodeRejected, op, "%q is a folder of the server, which cannot be an object too", key)
	}
	return nil
}

// makeFolders makes the folders above key that are missing, one call at a time:
// servers lock what they make, and two that make the same folder get in each
// other's way.
func (s *Storage) makeFolders(ctx context.Context, op, key string) error {
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return storage.Interrupted(ctx, op, "waiting to make folders")
	}
	for i := range key {
		if key[i] != '/' {
			continue
		}
		if err := s.makeFolder(ctx, op, key[:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// lockedTries and lockedWait are how long a folder that another process just
// makes is waited for.
const (
	lockedTries = 50
	lockedWait  = 20 * time.Millisecond
)

func (s *Storage) makeFolder(ctx context.Context, op, dir string) error {
	for try := 1; ; try++ {
		resp, err := s.sendOnce(ctx, &request{op: op, method: "MKCOL", path: dir})
		if err != nil {
			return err
		}
		wire.Drain(resp)
		switch status := resp.StatusCode; {
		case status < 300, status == http.StatusMethodNotAllowed: // made, or there before
			return nil
		case status == http.StatusLocked && try < lockedTries:
			select {
			case <-time.After(lockedWait):
			case <-ctx.Done():
				return storage.Interrupted(ctx, op, "waiting for a folder")
			}
		case status == http.StatusInternalServerError && s.fileOnTheWay(ctx, op, dir):
			return wire.Answered(storage.CodeRejected, op, dir, status, resp.Header, "to making a folder where a file is in the way")
		case storage.ClassifyStatus(status) == storage.ClassTransient, status >= 500, status == http.StatusUnauthorized:
			return wire.Answered(wire.CodeOfStatus(status, false), op, dir, status, resp.Header, "")
		default:
			return wire.Answered(storage.CodeRejected, op, dir, status, resp.Header, "to making the folder")
		}
	}
}

// fileOnTheWay reports that dir or a folder above it is a file, which some
// servers call an error of their own.
func (s *Storage) fileOnTheWay(ctx context.Context, op, dir string) bool {
	for i := range dir {
		if dir[i] != '/' {
			continue
		}
		entries, err := s.propfind(ctx, op, dir[:i], "0")
		if err != nil {
			return false
		}
		if len(entries) > 0 && !entries[0].folder {
			return true
		}
	}
	return false
}

// discard removes a temporary file. A server may not yet have begun with a PUT
// that was cut, or have the file locked while it ends it.
func (s *Storage) discard(tmp string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	wait := lockedWait
	for range 7 {
		resp, err := s.sendOnce(ctx, &request{op: "discard", method: http.MethodDelete, path: tmp})
		if err != nil {
			return
		}
		wire.Drain(resp)
		if resp.StatusCode != http.StatusLocked && resp.StatusCode != http.StatusNotFound {
			return
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return
		}
	}
}

// Delete implements storage.Storage. It looks first whether key is a folder,
// which would be removed with all that is in it.
func (s *Storage) Delete(ctx context.Context, key string) error {
	const op = "Delete"
	if err := s.writable(op); err != nil {
		return err
	}
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if !tree.IsPath(key) {
		return nil
	}
	entries, err := s.propfind(ctx, op, key, "0")
	if storage.CodeOf(err) == storage.CodeKeyNotFound || err == nil && (len(entries) == 0 || entries[0].folder) {
		return nil
	}
	if err != nil {
		return err
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodDelete, path: key, write: true})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}

// RemoveTree implements staged.TreeRemover: a folder is removed with what is in
// it.
func (s *Storage) RemoveTree(ctx context.Context, prefix string) error {
	const op = "RemoveTree"
	if err := s.writable(op); err != nil {
		return err
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodDelete, path: prefix, write: true})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}

// entry is what a PROPFIND says of a file or folder.
type entry struct {
	info   storage.Info // Key with a slash at its end for a folder
	folder bool
}

type multistatus struct {
	Responses []struct {
		Href     string `xml:"DAV: href"`
		Propstat []struct {
			Status string `xml:"DAV: status"`
			Prop   struct {
				Collection *struct{} `xml:"DAV: resourcetype>collection"`
				Length     string    `xml:"DAV: getcontentlength"`
				Modified   string    `xml:"DAV: getlastmodified"`
				ETag       string    `xml:"DAV: getetag"`
			} `xml:"DAV: prop"`
		} `xml:"DAV: propstat"`
	} `xml:"DAV: response"`
}

const propfindBody = `<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/><getetag/></prop></propfind>`

// propfind asks for the properties of p, and with depth "1" of what is in it.
// The entry for p itself comes first.
func (s *Storage) propfind(ctx context.Context, op, p, depth string) ([]entry, error) {
	content := &wire.Content{Length: int64(len(propfindBody))}
	ask := func(p string) (*http.Response, error) {
		resp, err := s.sendOnce(ctx, &request{
			op: op, method: "PROPFIND", path: p, content: content, source: strings.NewReader(propfindBody),
			header: http.Header{"Depth": {depth}, "Content-Type": {"application/xml"}},
		})
		content.Wait()
		return resp, err
	}
	resp, err := ask(p)
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 && !strings.HasSuffix(p, "/") {
		wire.Drain(resp)
		resp, err = ask(p + "/")
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMultiStatus {
		code := wire.CodeOfStatus(resp.StatusCode, p != "")
		if resp.StatusCode < 300 {
			code = storage.CodeUnsupported
		}
		return nil, wire.Answered(code, op, p, resp.StatusCode, resp.Header, "to PROPFIND")
	}
	var answer multistatus
	if err := xml.NewDecoder(io.LimitReader(resp.Body, maxListBody)).Decode(&answer); err != nil {
		return nil, wire.Unanswered(ctx, op, p, err, false)
	}
	var entries []entry
	for _, r := range answer.Responses {
		e, ok := s.entryOf(r.Href)
		if !ok {
			continue
		}
		for _, p := range r.Propstat {
			if !strings.Contains(p.Status, " 200") {
				continue
			}
			e.folder = e.folder || p.Prop.Collection != nil
			if size, err := strconv.ParseInt(p.Prop.Length, 10, 64); err == nil {
				e.info.Size = size
			}
			if modified, err := http.ParseTime(p.Prop.Modified); err == nil {
				e.info.ModTime = modified.UTC()
			}
			if p.Prop.ETag != "" {
				e.info.ETag = wire.Weak(p.Prop.ETag)
			}
		}
		if e.folder && e.info.Key != "" && !strings.HasSuffix(e.info.Key, "/") {
			e.info.Key += "/"
		}
		if strings.TrimSuffix(e.info.Key, "/") == strings.TrimSuffix(p, "/") && len(entries) > 0 {
			entries = append([]entry{e}, entries...)
		} else {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// entryOf finds the key in an href, which is a path or a whole URL, encoded
// once.
func (s *Storage) entryOf(href string) (entry, bool) {
	u, err := url.Parse(strings.TrimSpace(href))
	if err != nil {
		return entry{}, false
	}
	key, below := strings.CutPrefix(u.Path, s.base.Path)
	if !below && u.Path+"/" != s.base.Path {
		return entry{}, false
	}
	return entry{info: storage.Info{Key: key}, folder: strings.HasSuffix(key, "/") || key == ""}, true
}

// parentOf is the folder that key is in.
func parentOf(key string) string {
	dir := path.Dir(strings.TrimSuffix(key, "/"))
	if dir == "." {
		return ""
	}
	return dir + "/"
}
