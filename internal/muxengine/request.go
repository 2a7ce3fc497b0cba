package muxengine

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

// operation is one of the primitives of storage.Storage, or what the engine
// makes of them for itself.
type operation int

const (
	opGet operation = iota
	opStat
	opList
	opSet
	opSetPartial
	opDelete
	// opResume goes on with a body at an offset, if the object is the same.
	opResume
	opGetTags
	opSetTags
	opCreateUpload
	opListUploads
	opUploadPart
	opCompleteUpload
	opAbortUpload
	opListParts
)

func (o operation) carriesBody() bool { return o == opSet || o == opSetPartial || o == opUploadPart }

// changes says that success changes what readers see.
func (o operation) changes() bool {
	return o == opSet || o == opSetPartial || o == opDelete || o == opSetTags || o == opCompleteUpload
}

func (o operation) writes() bool {
	return o.changes() || o == opCreateUpload || o == opUploadPart || o == opAbortUpload
}

// changesWhatIsThere says that the object that is changed is kept otherwise, so
// that it is looked for where a key may be anywhere.
func (o operation) changesWhatIsThere() bool { return o == opSetPartial || o == opSetTags }

// needsSpace says that a store without space for more is no use.
func (o operation) needsSpace() bool { return o.carriesBody() || o == opCreateUpload }

// continues says that the operation belongs to an upload that has begun.
func (o operation) continues() bool { return o >= opUploadPart }

// names are those of the contract's methods, as errors carry them; traced are
// those of spans.
var (
	names = [...]string{
		"GetStream", "Stat", "List", "SetStream", "SetPartial", "Delete", "GetStream", "GetTags", "SetTags",
		"CreateUpload", "ListUploads", "UploadPart", "CompleteUpload", "AbortUpload", "ListParts",
	}
	traced = [...]string{
		"getStream", "stat", "list", "setStream", "setPartial", "delete", "getStream", "getTags", "setTags",
		"createUpload", "listUploads", "uploadPart", "completeUpload", "abortUpload", "listParts",
	}
)

func (o operation) String() string { return names[o] }

// request is one call of the contract in a form that can be made of any member,
// any number of times.
type request struct {
	op  operation
	key string
	// get is for reads; of opStat and opDelete only its conditions count.
	get    storage.GetOptions
	set    *storage.SetOptions
	list   *storage.ListOptions
	offset int64
	tags   map[string]string
	body   storage.Body
	// version is what set carries as the object's version, "" for none.
	version string
	// pin is the path of the leaf that a listing began with.
	pin string
	// same is the object that opResume must find, or of which set.CopyOf says
	// that it is written.
	same *identityOf
	// upload is what requests about uploads need besides.
	upload *uploadRequest
}

// reply is the answer to a request.
type reply struct {
	obj    *storage.Object
	info   storage.Info
	page   *storage.ListPage
	tags   map[string]string
	upload *uploadReply
}

// conditional reports whether r is a write that must hold a precondition.
func (r *request) conditional() bool {
	switch r.op {
	case opSet, opCompleteUpload:
		return !r.set.Conditions.IsZero()
	case opDelete:
		return !r.get.Conditions.IsZero()
	default:
		return false
	}
}

// call makes r of s, with body in place of its own.
func (r *request) call(ctx context.Context, s storage.Storage, body storage.Body) (rep reply, err error) {
	switch r.op {
	case opGet:
		rep.obj, err = s.GetStream(ctx, r.key, r.get)
	case opStat:
		rep.info, err = s.Stat(ctx, r.key, storage.StatOptions{Conditions: r.get.Conditions})
	case opList:
		var page storage.ListPage
		page, err = s.List(ctx, *r.list)
		rep.page = &page
	case opSet:
		rep.info, err = s.SetStream(ctx, r.key, body, *r.set)
	case opSetPartial:
		rep.info, err = s.SetPartial(ctx, r.key, r.offset, body)
	case opDelete:
		err = storage.DeleteIf(ctx, s, r.key, r.get.Conditions)
	case opGetTags:
		rep.tags, err = storage.GetTags(ctx, s, r.key)
	case opSetTags:
		err = storage.SetTags(ctx, s, r.key, r.tags)
	case opResume:
		rep.obj, err = resume(ctx, s, r)
	}
	return rep, err
}
