package s3

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/suaveplan/storagemux/internal/muxengine"
)

// AccessLog says which requests are logged. It is a flag's value.
type AccessLog string

const (
	// AccessLogErrors logs at Warn the answers of 500 and above and those that
	// broke off, and at Debug all others.
	AccessLogErrors AccessLog = "errors"
	// AccessLogAll logs those others at Info.
	AccessLogAll AccessLog = "all"
	// AccessLogOff logs none.
	AccessLogOff AccessLog = "off"
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *AccessLog) UnmarshalText(text []byte) error {
	switch given := AccessLog(text); given {
	case AccessLogErrors, AccessLogAll, AccessLogOff:
		*a = given
		return nil
	default:
		return fmt.Errorf("must be %s, %s or %s", AccessLogErrors, AccessLogAll, AccessLogOff)
	}
}

// MarshalText implements encoding.TextMarshaler.
func (a AccessLog) MarshalText() ([]byte, error) { return []byte(a), nil }

// level is that of a request's line.
func (a AccessLog) level(s RequestStats) slog.Level {
	failed := s.Status >= http.StatusInternalServerError || s.Aborted && s.Status != StatusClientClosed
	switch {
	case failed:
		return slog.LevelWarn
	case a == AccessLogAll:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// outcome sums a request up in one word.
func (s RequestStats) outcome() string {
	switch {
	case s.Status == StatusClientClosed:
		return "left" // the client did, before the end
	case s.Aborted:
		return "cut" // the answer broke off
	case s.Status >= http.StatusInternalServerError:
		return "failed"
	case s.Status >= http.StatusBadRequest:
		return "refused"
	default:
		return "ok"
	}
}

// log writes the request's line. Of the client's request it holds operation and
// key and nothing of headers and query, where credentials and signatures are; of
// a store's error not the URL.
func (q *request) log() {
	mode, ctx := q.h.opts.AccessLog, q.r.Context()
	level := mode.level(q.stats)
	if mode == AccessLogOff || !q.h.opts.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("requestID", q.id),
		slog.String("operation", q.stats.Operation),
		slog.String("key", q.target.key),
		slog.Int("status", q.stats.Status),
		slog.String("outcome", q.stats.outcome()),
		slog.Int64("bytesIn", q.stats.BytesIn),
		slog.Int64("bytesOut", q.stats.BytesOut),
		slog.Duration("firstByte", q.stats.FirstByte),
		slog.Duration("duration", q.stats.Duration),
	}
	optional := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	optional("member", q.stats.ServedBy)
	optional("code", q.stats.ErrorCode)
	optional("storageCode", q.stats.StorageCode)
	if q.failure != nil {
		optional("error", muxengine.Describe(q.failure).Message)
	}
	if span := q.span; span != nil {
		optional("traceID", span.SpanContext().TraceID().String())
	}
	q.h.opts.Logger.LogAttrs(ctx, level, "request", attrs...)
}
