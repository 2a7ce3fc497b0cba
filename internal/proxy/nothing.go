package proxy

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

// nothing is what is left of a mux whose members were all removed by force: a
// store that is down.
type nothing struct{}

var (
	_ storage.Storage   = nothing{}
	_ storage.Multipart = nothing{}
	_ storage.Tagger    = nothing{}
)

func (nothing) down(op string) error {
	return storage.Errorf(storage.CodeAllBackendsDown, op, "the mux has fewer members than its mode needs")
}

func (n nothing) GetStream(context.Context, string, storage.GetOptions) (*storage.Object, error) {
	return nil, n.down("GetStream")
}

func (n nothing) SetStream(context.Context, string, storage.Body, storage.SetOptions) (storage.Info, error) {
	return storage.Info{}, n.down("SetStream")
}

func (n nothing) SetPartial(context.Context, string, int64, storage.Body) (storage.Info, error) {
	return storage.Info{}, n.down("SetPartial")
}

func (n nothing) Delete(context.Context, string) error { return n.down("Delete") }

func (n nothing) List(context.Context, storage.ListOptions) (storage.ListPage, error) {
	return storage.ListPage{}, n.down("List")
}

func (n nothing) Stat(context.Context, string, storage.StatOptions) (storage.Info, error) {
	return storage.Info{}, n.down("Stat")
}

func (n nothing) CreateUpload(context.Context, string, storage.SetOptions) (string, error) {
	return "", n.down("CreateUpload")
}

func (n nothing) UploadPart(context.Context, string, string, int, storage.Body, storage.SetOptions) (storage.Part, error) {
	return storage.Part{}, n.down("UploadPart")
}

func (n nothing) CompleteUpload(context.Context, string, string, []storage.Part, storage.SetOptions) (storage.Info, error) {
	return storage.Info{}, n.down("CompleteUpload")
}

func (n nothing) AbortUpload(context.Context, string, string) error { return n.down("AbortUpload") }

func (n nothing) ListParts(context.Context, string, string, int, int) ([]storage.Part, bool, error) {
	return nil, false, n.down("ListParts")
}

func (n nothing) ListUploads(context.Context, storage.ListUploadsOptions) (storage.UploadPage, error) {
	return storage.UploadPage{}, n.down("ListUploads")
}

func (n nothing) GetTags(context.Context, string) (map[string]string, error) {
	return nil, n.down("GetTags")
}

func (n nothing) SetTags(context.Context, string, map[string]string) error { return n.down("SetTags") }

func (nothing) Capabilities() storage.Capabilities { return storage.AllCapabilities() }
