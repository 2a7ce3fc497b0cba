package proxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	s3front "github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/proxy/seal"
	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

// applier puts documents into force, whole or not at all.
type applier struct {
	log     *slog.Logger
	hub     *hub
	front   *s3front.Handler
	gate    *gate
	metrics *metrics
	engine  muxengine.Options
	open    opener
	// progressed is called when drains may have come further.
	progressed func()

	closing sync.WaitGroup // stores that are being let go

	mu        sync.Mutex // held while a document is put into force
	served    atomic.Pointer[served]
	rejection atomic.Pointer[muxconfig.Rejection]
	// retired are the figures of engines that were given up.
	retired atomic.Pointer[muxconfig.Totals]
}

// take puts what is offered into force and reports whether it did. On any
// error what was served before goes on.
func (a *applier) take(ctx context.Context, offer Offer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	doc, err := muxconfig.Decode(offer.Data)
	if err != nil {
		a.reject(offer.Data, err)
		return false
	}
	if before := a.served.Load(); before != nil && !doc.Supersedes(before.doc) {
		same := doc.Revision == before.doc.Revision && doc.Transitions == before.doc.Transitions && doc.Hash == before.doc.Hash
		if !same && !offer.Copy {
			a.reject(offer.Data, fmt.Errorf("revision %d of leader %d does not supersede revision %d of leader %d, which is served",
				doc.Revision, doc.Transitions, before.doc.Revision, before.doc.Transitions))
		}
		return false
	}
	if err := a.apply(ctx, doc); err != nil {
		a.reject(offer.Data, err)
		return false
	}
	// A copy of an older document does not undo the refusal of a newer one.
	if r := a.rejection.Load(); r != nil && (!offer.Copy || doc.Revision > r.Revision) {
		a.rejection.Store(nil)
	}
	a.metrics.reloads.WithLabelValues("applied").Inc()
	a.log.Info("document applied", "revision", doc.Revision, "transitions", doc.Transitions, "hash", doc.Hash)
	a.hub.changed()
	a.progressed()
	return true
}

// reject notes which document was refused and why.
func (a *applier) reject(data []byte, cause error) {
	// Of a document that cannot be read, say at least which one it is.
	var named struct {
		Revision int64  `json:"revision"`
		Hash     string `json:"hash"`
	}
	_ = json.Unmarshal(data, &named)
	rejection := &muxconfig.Rejection{Revision: named.Revision, Hash: named.Hash, Message: cause.Error()}
	if before := a.rejection.Swap(rejection); before != nil && *before == *rejection {
		return
	}
	a.metrics.reloads.WithLabelValues("rejected").Inc()
	a.log.Error("document rejected", "revision", rejection.Revision, "hash", rejection.Hash, "error", rejection.Message)
	a.hub.changed()
}

// apply builds all that doc needs and then swaps it in. Nothing is changed
// before the last step that can fail is done.
func (a *applier) apply(ctx context.Context, doc *muxconfig.Document) error {
	frontTLS, err := certificate("frontend.tls", doc.Frontend.TLS)
	if err != nil {
		return err
	}
	adminTLS, err := certificate("admin.tls", &doc.Admin.TLS)
	if err != nil {
		return err
	}
	sealer, err := seal.New(doc.Keys.Current.Reveal(), doc.Keys.Previous.Reveal())
	if err != nil {
		return err
	}
	before := a.served.Load()
	next, old := &served{doc: doc}, stores(nil)
	if before != nil {
		old = before.stores
	}
	if next.stores, err = openStores(ctx, doc, old, a.open); err != nil {
		return err
	}
	if err = a.runMux(next, before); err != nil {
		closeStores(next.stores.retired(old))
		return err
	}

	// From here on nothing can fail.
	current := &generation{Mux: next.mux, ended: a.progressed}
	next.generations = generations{first: 1, list: []*generation{current}}
	if before != nil {
		next.generations = before.generations.next(current)
	}
	next.members = places(doc, before, next.generations.current())
	config := &s3front.Config{
		Storage: current, Bucket: doc.Frontend.Bucket, Domains: doc.Frontend.Domains, Auth: s3front.AuthSigV4,
		Keys: keyring(doc.Frontend.KeyPairs), ServeBackendHeader: true, Sealer: sealer,
	}
	if doc.Frontend.Auth == muxconfig.FrontendNone {
		config.Auth = s3front.AuthNone
	}
	if next.mux == nil {
		config.Storage = nothing{}
	}
	next.stores.resize(doc)
	a.served.Store(next)
	a.front.SetConfig(config)
	a.gate.set(frontTLS, adminTLS, doc.Admin.Token.Reveal())
	if before != nil {
		if before.mux != nil && before.mux != next.mux {
			a.giveUp(before.mux)
		}
		closeHolders(before.ladders.retired(next.ladders))
		a.letGo(old.retired(next.stores))
	}
	return nil
}

// letGo closes stores that nothing new is asked of. That may take a while, as
// they clean up behind themselves.
func (a *applier) letGo(gone []*store) {
	a.closing.Go(func() { closeStores(gone) })
}

// runMux makes the engine serve the document of next from its stores: the one that
// runs, which keeps its state, or a new one. There is none where the root has too
// few members.
func (a *applier) runMux(next, before *served) error {
	t := &topologist{doc: next.doc, stores: next.stores.byName(next.doc)}
	old := ladders(nil)
	if before != nil {
		old = before.ladders
	}
	var err error
	if next.ladders, err = a.openLadders(next.doc, t, old); err != nil {
		return err
	}
	config, works, err := t.topology()
	switch {
	case err != nil || !works:
	case before != nil && before.mux != nil:
		next.mux, err = before.mux, before.mux.Apply(config)
	default:
		next.mux, err = muxengine.New(config, a.engine)
	}
	if err != nil {
		closeHolders(next.ladders.retired(old))
	}
	return err
}

// giveUp ends a mux and keeps its figures, so that totals never fall.
func (a *applier) giveUp(mux *muxengine.Mux) {
	sum := totals(mux.Stats(), a.retired.Load())
	a.retired.Store(&sum)
	a.metrics.retired.add(mux.Stats())
	mux.Close()
}

// retryRefused tries once more the settings that stores refused.
func (a *applier) retryRefused(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.served.Load()
	if now == nil || now.mux == nil || !now.stores.anyRefused() {
		return
	}
	next := *now
	var err error
	if next.stores, err = openStores(ctx, now.doc, now.stores, a.open); err != nil {
		return
	}
	changed := now.stores.retired(next.stores)
	if len(changed) == 0 {
		return
	}
	if err = a.runMux(&next, now); err != nil {
		closeStores(next.stores.retired(now.stores))
		return
	}
	a.served.Store(&next)
	closeHolders(now.ladders.retired(next.ladders))
	a.letGo(changed)
	a.log.Info("credentials that were refused are in use now", "backends", len(changed))
	a.hub.changed()
}

// refusedInterval is how often refused credentials are tried again.
const refusedInterval = 10 * time.Second

// run retries what stores refused until ctx ends.
func (a *applier) run(ctx context.Context) {
	ticker := time.NewTicker(refusedInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.retryRefused(ctx)
		}
	}
}

// close ends the engine. Nothing is applied after it.
func (a *applier) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.served.Load(); now != nil {
		if now.mux != nil {
			now.mux.Close()
		}
		closeHolders(now.ladders.retired(nil))
		a.letGo(now.stores.retired(nil))
	}
	a.closing.Wait()
}

// event takes what happens in the engine.
func (a *applier) event(e muxengine.Event) {
	wire := wireEvent(e)
	if !isStateEvent(e.Topic) {
		if a.hub.requestEvent(wire) {
			a.log.Warn(wire.Message, "topic", wire.Topic, "path", wire.Path, "code", wire.Code)
		}
		return
	}
	a.hub.stateEvent(wire)
	level := slog.LevelInfo
	if e.Topic == muxengine.TopicBackendDown {
		level = slog.LevelWarn
	}
	a.log.Log(context.Background(), level, wire.Message, "topic", wire.Topic, "path", wire.Path, "code", wire.Code, "cause", causeText(e.Cause))
	if e.Topic == muxengine.TopicDrainCompleted {
		a.progressed()
	}
}

func causeText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func certificate(field string, pair *muxconfig.KeyCert) (*tls.Certificate, error) {
	if pair == nil {
		return nil, nil
	}
	cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key.Reveal()))
	if err != nil {
		// The cause could quote what it could not read.
		return nil, &muxconfig.InvalidError{Field: field, Rule: "must be a PEM certificate and the key that belongs to it"}
	}
	return &cert, nil
}

func keyring(pairs []muxconfig.KeyPair) *sigv4.Keyring {
	credentials := make([]sigv4.Credentials, len(pairs))
	for i, pair := range pairs {
		credentials[i] = sigv4.Credentials{AccessKeyID: pair.AccessKeyID, SecretAccessKey: pair.SecretAccessKey.Reveal()}
	}
	return sigv4.NewKeyring(credentials...)
}

var _ storage.Storage = (*generation)(nil)
