package configsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy"
)

// Pace of the source.
const (
	// liveTimeout is how long the API server may take to answer before the
	// copies count.
	liveTimeout = 5 * time.Second
	minBackoff  = 500 * time.Millisecond
	maxBackoff  = 15 * time.Second
	// watchLife bounds one watch, so that each is renewed now and then.
	watchLife = 5 * time.Minute
)

// Options say where documents are.
type Options struct {
	Client kubernetes.Interface
	Log    *slog.Logger
	// Namespace and Name of the config Secret.
	Namespace, Name string
	// MountPath is the folder in which the Secret is mounted.
	MountPath string
	// StateDir is a folder in memory for the document that is served, empty
	// for none.
	StateDir string
}

// Source implements proxy.Source.
type Source struct{ opts Options }

var _ proxy.Source = (*Source)(nil)

// New returns a Source.
func New(opts Options) *Source { return &Source{opts: opts} }

// Run offers the live document first; where the API server does not answer, the
// mounted and the saved copy. Then it follows the Secret, and while that fails
// it falls back to the mounted copy.
func (s *Source) Run(ctx context.Context, take func(context.Context, proxy.Offer) bool) error {
	f := follower{Source: s, take: take}
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || time.Since(began) > maxBackoff {
			attempt = 0 // the API server was there
		}
		if err != nil {
			s.opts.Log.Warn("the API server does not serve the config secret", "error", err.Error(), "attempt", attempt+1)
			// Read before the mounted copy takes its place on disk; of the
			// two, the newer one wins.
			saved := f.readSaved()
			f.offerMounted(ctx)
			f.offerSaved(ctx, saved)
			sleep(ctx, backoff(attempt))
		}
	}
	return nil
}

// backoff grows from minBackoff to maxBackoff, with jitter.
func backoff(attempt int) time.Duration {
	d := maxBackoff
	if attempt < 16 {
		d = min(minBackoff<<attempt, maxBackoff)
	}
	return d/2 + rand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// follower is one Run.
type follower struct {
	*Source
	take func(context.Context, proxy.Offer) bool
	// mounted is what the mounted copy held when it was offered last.
	mounted string
	// saved says that the saved copy was offered, or is older than what is
	// served.
	saved bool
}

// follow lists the Secret and watches it from there. It returns nil when a
// watch came to its natural end.
func (f *follower) follow(ctx context.Context) error {
	secrets := f.opts.Client.CoreV1().Secrets(f.opts.Namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, f.opts.Name).String()
	listing, cancel := context.WithTimeout(ctx, liveTimeout)
	list, err := secrets.List(listing, metav1.ListOptions{FieldSelector: selector})
	cancel()
	if err != nil {
		return fmt.Errorf("list secret %s/%s: %w", f.opts.Namespace, f.opts.Name, err)
	}
	for i := range list.Items {
		f.offerLive(ctx, &list.Items[i])
	}
	life := int64((watchLife/2 + rand.N(watchLife/2)).Seconds())
	watcher, err := secrets.Watch(ctx, metav1.ListOptions{
		FieldSelector: selector, ResourceVersion: list.ResourceVersion, TimeoutSeconds: &life, AllowWatchBookmarks: true,
	})
	if err != nil {
		return fmt.Errorf("watch secret %s/%s: %w", f.opts.Namespace, f.opts.Name, err)
	}
	defer watcher.Stop()
	return f.events(ctx, watcher)
}

func (f *follower) events(ctx context.Context, watcher watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.ResultChan():
			if !open {
				return nil
			}
			switch event.Type {
			case watch.Added, watch.Modified:
				if secret, ok := event.Object.(*corev1.Secret); ok {
					f.offerLive(ctx, secret)
				}
			case watch.Deleted:
				f.opts.Log.Warn("the config secret was deleted; what is served goes on being served")
			case watch.Error:
				err := apierrors.FromObject(event.Object)
				if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					return nil // listing again mends it
				}
				return fmt.Errorf("watch secret %s/%s: %w", f.opts.Namespace, f.opts.Name, err)
			}
		}
	}
}

func (f *follower) offerLive(ctx context.Context, secret *corev1.Secret) {
	// A Secret of another name would be a fault of the server, or of a test.
	data, ok := secret.Data[muxconfig.SecretKey]
	if !ok || secret.Name != f.opts.Name {
		return
	}
	if f.offer(ctx, proxy.Offer{Data: data}) {
		f.saved = true
		return
	}
	// A container that restarts while the Secret holds a document that is
	// refused goes on with the one it served before.
	f.offerSaved(ctx, f.readSaved())
}

func (f *follower) offerMounted(ctx context.Context) {
	path := filepath.Join(f.opts.MountPath, muxconfig.SecretKey)
	data, err := os.ReadFile(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			f.opts.Log.Warn("the mounted document cannot be read", "error", err.Error())
		}
		return
	}
	if string(data) == f.mounted {
		return
	}
	f.mounted = string(data)
	f.offer(ctx, proxy.Offer{Data: data, Copy: true})
}

// readSaved returns the saved copy, nil if there is none or none is needed.
func (f *follower) readSaved() []byte {
	if f.saved || f.opts.StateDir == "" {
		return nil
	}
	data, err := os.ReadFile(f.savedPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.opts.Log.Warn("the saved document cannot be read", "error", err.Error())
	}
	return data
}

// offerSaved offers the saved copy once, unless something newer was taken.
func (f *follower) offerSaved(ctx context.Context, data []byte) {
	if f.saved {
		return
	}
	f.saved = true
	if data != nil {
		f.offer(ctx, proxy.Offer{Data: data, Copy: true})
	}
}

// offer hands a document on, and saves it if it is served now.
func (f *follower) offer(ctx context.Context, o proxy.Offer) (taken bool) {
	taken = f.take(ctx, o)
	if !taken || f.opts.StateDir == "" {
		return taken
	}
	if err := f.save(o.Data); err != nil {
		f.opts.Log.Warn("the document that is served cannot be saved", "error", err.Error())
	}
	return taken
}

func (s *Source) savedPath() string { return filepath.Join(s.opts.StateDir, muxconfig.SecretKey) }

// save replaces the saved copy in one step.
func (s *Source) save(data []byte) error {
	file, err := os.CreateTemp(s.opts.StateDir, ".document-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), s.savedPath())
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
