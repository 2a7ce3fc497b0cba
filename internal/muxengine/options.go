package muxengine

import (
	"io"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Options are what a mux gets from its surroundings. Every field may be left
// out. They hold for the mux and all muxes that it builds.
type Options struct {
	// Events receives every event on the goroutine that caused it. It must
	// not block, and of the mux it may call nothing but Stats. Nil drops
	// them. What Event.Cause says may hold a URL with its query; Describe
	// leaves that out.
	Events func(Event)
	// Tracer makes the spans storage-mux.<operation> and
	// storage-mux.attempt. Nil makes none, at no cost.
	Tracer trace.Tracer
	// Rand is the source of random choices: 64 random bits at a call, from
	// any goroutine. Nil is math/rand/v2.Uint64.
	Rand func() uint64
	// Hash replaces FNV-1a under StickyFNV1aModulo.
	Hash func(key string) uint32
	// IdleProbe is how long after its cooldown a member that no request
	// has asked is probed all the same, so that its state is true also where
	// nobody calls. Zero leaves all probing to requests.
	IdleProbe time.Duration
	// Spool keeps bodies so that they can be read again. Nil is a
	// NewMemorySpool of DefaultSpoolBudget.
	Spool Spool
	// PassVersions leaves the versions of objects to whoever calls: they stay
	// in the metadata, both ways. It is for a mux inside a store that is
	// itself a member of another mux.
	PassVersions bool
}

// Spool makes room for bodies that may have to be read again.
type Spool interface {
	// Open starts to keep one body of size bytes, -1 if that is unknown.
	// It returns ErrSpoolFull if there is no room for it.
	Open(size int64) (Spooled, error)
}

// Spooled is one body being kept. It grows by Write, which is called by one
// goroutine at a time, while ReadAt may read what is written from any number
// of others. Write keeps all of p or returns ErrSpoolFull, after which what was
// written before can still be read. Close frees the room; no other method is
// called after it.
type Spooled interface {
	io.Writer
	io.ReaderAt
	io.Closer
}
