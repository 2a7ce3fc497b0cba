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
)

func (o operation) writes() bool      { return o == opSet || o == opSetPartial || o == opDelete }
func (o operation) carriesBody() bool { return o == opSet || o == opSetPartial }

// names are those of the contract's methods, as errors carry them; traced are
// those of spans.
var (
	names  = [...]string{"GetStream", "Stat", "List", "SetStream", "SetPartial", "Delete", "GetStream"}
	traced = [...]string{"getStream", "stat", "list", "setStream", "setPartial", "delete", "getStream"}
)

func (o operation) String() string { return names[o] }

// request is one call of the contract in a form that can be made of any member,
// any number of times.
type request struct {
	op  operation
	key string
	// get is for reads; of opStat only its conditions count.
	get    storage.GetOptions
	set    *storage.SetOptions
	list   *storage.ListOptions
	offset int64
	body   storage.Body
	// version is what set carries as the object's version, "" for none.
	version string
	// pin is the path of the leaf that a listing began with.
	pin string
	// same is the object that opResume must find.
	same *identityOf
}

// reply is the answer to a request.
type reply struct {
	obj  *storage.Object
	info storage.Info
	page storage.ListPage
}

// conditional reports whether r is a write that must hold a precondition.
func (r *request) conditional() bool { return r.op == opSet && !r.set.Conditions.IsZero() }

// call makes r of s, with body in place of its own.
func (r *request) call(ctx context.Context, s storage.Storage, body storage.Body) (rep reply, err error) {
	switch r.op {
	case opGet:
		rep.obj, err = s.GetStream(ctx, r.key, r.get)
	case opStat:
		rep.info, err = s.Stat(ctx, r.key, storage.StatOptions{Conditions: r.get.Conditions})
	case opList:
		rep.page, err = s.List(ctx, *r.list)
	case opSet:
		rep.info, err = s.SetStream(ctx, r.key, body, *r.set)
	case opSetPartial:
		rep.info, err = s.SetPartial(ctx, r.key, r.offset, body)
	case opDelete:
		err = s.Delete(ctx, r.key)
	case opResume:
		rep.obj, err = resume(ctx, s, r)
	}
	return rep, err
}
