package muxengine

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Mux is a storage.Storage over several others. All methods are safe for
// concurrent use. Its errors are *storage.Error.
type Mux struct{}

var _ storage.Storage = (*Mux)(nil)

// New makes a mux of cfg. It fails with one of the codes that Config names, or
// RECURSION_DEPTH_EXCEEDED. Active checks begin at once; Close ends them.
func New(cfg Config, opts Options) (*Mux, error) { panic("being written") }

// Apply replaces the whole topology in one step. Requests that have begun keep
// the old one; runtime state is kept by Member.ID; members that are left out
// are drained in the background. On error nothing has changed.
func (m *Mux) Apply(cfg Config) error { panic("being written") }

// AddBackend appends a member. A name that is taken, also by a member that is
// draining, is BACKEND_NAME_CONFLICT.
func (m *Mux) AddBackend(member Member) error { panic("being written") }

// RemoveBackend drains the member and takes it out, without waiting for the
// requests on it: those may go on for its DrainTimeout.
func (m *Mux) RemoveBackend(name string) error { panic("being written") }

// SetWeight changes a member's weight.
func (m *Mux) SetWeight(name string, weight int) error { panic("being written") }

// Drain takes the member out of the choice, waits until nothing is in flight on
// it, and removes it. A second call joins the first. When ctx ends it returns
// BACKEND_ABORTED and the member stays draining.
func (m *Mux) Drain(ctx context.Context, name string) error { panic("being written") }

// CancelDrained ends the requests that are in flight on a draining member with
// BACKEND_DRAINING, which has no effect on its health.
func (m *Mux) CancelDrained(name string) error { panic("being written") }

// Stats returns the figures of this moment.
func (m *Mux) Stats() Stats { panic("being written") }

// Close ends active checks and probes and waits for them. Requests in flight go
// on; later ones fail with ALL_BACKENDS_DOWN.
func (m *Mux) Close() { panic("being written") }

// Capabilities returns the weakest over all members, whatever their health.
func (m *Mux) Capabilities() storage.Capabilities { panic("being written") }

// GetStream implements storage.Storage. A body that breaks is resumed on the
// next member if that one holds the same version.
func (m *Mux) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	panic("being written")
}

// SetStream implements storage.Storage. A body that cannot be read again is
// kept in Options.Spool as far as that has room.
func (m *Mux) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	panic("being written")
}

// SetPartial implements storage.Storage.
func (m *Mux) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	panic("being written")
}

// Delete implements storage.Storage.
func (m *Mux) Delete(ctx context.Context, key string) error { panic("being written") }

// List implements storage.Storage. In keyspace spread it merges the listings of
// all members.
func (m *Mux) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	panic("being written")
}

// Stat implements storage.Storage.
func (m *Mux) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	panic("being written")
}
