package swift

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ncw/swift/v2"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// authTimeout bounds one request to the identity service.
const authTimeout = 20 * time.Second

// session is where the account is, and the token that opens it.
type session struct {
	base    *url.URL
	token   []string
	expires time.Time // zero if it is not known
}

func (s *session) valid() bool {
	return s != nil && (s.expires.IsZero() || time.Until(s.expires) > time.Minute)
}

// sessions keeps the current session.
type sessions struct {
	cfg       Config
	transport *wire.Connections
	current   atomic.Pointer[session]
	// asking is held by who asks the identity service.
	asking chan struct{}
}

// get returns a session that is not old, which is the one before if that is
// nil. Callers that need a new one at the same time share it.
func (s *sessions) get(ctx context.Context, op string, old *session) (*session, error) {
	if now := s.current.Load(); now != old && now.valid() {
		return now, nil
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, storage.Interrupted(ctx, op, "waiting for a token")
	}
	if now := s.current.Load(); now != old && now.valid() {
		return now, nil
	}
	fresh, err := s.ask(ctx, op)
	if err == nil {
		s.current.Store(fresh)
	}
	return fresh, err
}

func (s *sessions) ask(ctx context.Context, op string) (*session, error) {
	auth := s.cfg.Auth
	conn := &swift.Connection{
		AuthUrl: s.cfg.AuthURL, AuthVersion: authVersion(s.cfg.AuthURL),
		UserName: auth.Username, ApiKey: auth.Password, Tenant: auth.Project,
		Domain: auth.UserDomain, TenantDomain: auth.ProjectDomain, Region: auth.Region,
		UserAgent: userAgent[0], Retries: 1, ConnectTimeout: authTimeout, Timeout: authTimeout,
		Transport: s.transport,
	}
	if err := conn.Authenticate(ctx); err != nil {
		return nil, refused(ctx, op, err)
	}
	base, err := url.Parse(strings.TrimSuffix(conn.StorageUrl, "/"))
	if err != nil || base.Host == "" {
		return nil, storage.Errorf(storage.CodeRejected, op, "the identity service gave no address of the account")
	}
	return &session{base: base, token: []string{conn.AuthToken}, expires: conn.Expires}, nil
}

// refused is the error of a request to the identity service.
func refused(ctx context.Context, op string, err error) error {
	var answer *swift.Error
	if ctx.Err() != nil || !errors.As(err, &answer) {
		e := wire.Unanswered(ctx, op, "", err, false)
		if ctx.Err() == nil {
			e.Message = "asking the identity service for a token"
		}
		return e
	}
	if answer.StatusCode == 0 { // there is no such region or account
		return storage.Errorf(storage.CodeRejected, op, "the identity service gave no account: %s", answer.Text)
	}
	code := wire.CodeOfStatus(answer.StatusCode, false)
	if code == storage.CodeBucketNotFound {
		code = storage.CodeRejected
	}
	e := storage.Errorf(code, op, "the identity service answered %d", answer.StatusCode)
	e.Status = answer.StatusCode
	return e
}
