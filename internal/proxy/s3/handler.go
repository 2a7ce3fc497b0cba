package s3

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Handler answers S3 requests. It is safe for concurrent use.
type Handler struct {
	opts     Options
	started  time.Time
	config   atomic.Pointer[Config]
	inFlight atomic.Int64
	// keepAlive is how long a client is left without a byte of an answer that
	// takes long to find.
	keepAlive time.Duration
}

// New returns a Handler that answers 503 until SetConfig is called.
func New(opts Options) *Handler {
	opts = opts.withDefaults()
	return &Handler{opts: opts, started: opts.Now(), keepAlive: 10 * time.Second}
}

// SetConfig puts c in the place of the configuration before. Requests that run
// end with the one they began with.
func (h *Handler) SetConfig(c *Config) { h.config.Store(c) }

// InFlight returns the number of requests that run.
func (h *Handler) InFlight() int64 { return h.inFlight.Load() }

// request is one request on its way through the front.
type request struct {
	h   *Handler
	cfg *Config
	w   http.ResponseWriter
	r   *http.Request
	// client holds the deadlines of w's connection.
	client client
	id     string
	start  time.Time

	query  sigv4.Query
	target target
	// auth is nil where requests need not be signed.
	auth *sigv4.Auth
	// contentSHA256 is what the client said of its body.
	contentSHA256 string
	// body is the verifying reader, once an operation asked for it.
	body *sigv4.Body

	stats RequestStats
	begun bool
	// failure is why the request failed, for the log.
	failure error
	span    trace.Span
}

// ServeHTTP implements http.Handler. An answer that breaks after its head was
// sent, and one whose client left, ends with a panic of http.ErrAbortHandler,
// by which net/http cuts the connection.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{h: h, cfg: h.config.Load(), w: w, r: r, id: h.opts.RequestID(), start: time.Now()}
	q.client = client{http.NewResponseController(w), DefaultClientIdle}
	if q.cfg != nil {
		q.client.idle = q.cfg.clientIdle()
	}
	running := h.inFlight.Add(1)
	defer h.inFlight.Add(-1)
	q.startSpan()
	defer q.finish()

	header := w.Header()
	header["x-amz-request-id"] = []string{q.id}
	header["Server"] = []string{"StorageMux"}
	if err := q.serve(running); err != nil {
		q.fail(err)
	}
}

func (q *request) serve(running int64) error {
	q.stats.Operation = "Unknown"
	switch {
	case q.cfg == nil:
		return refuse("ServiceUnavailable", http.StatusServiceUnavailable, "The server is not configured yet.")
	case running > q.cfg.maxInFlight():
		return refuse("SlowDown", http.StatusServiceUnavailable, "Please reduce your request rate.")
	}
	var err error
	if q.query, err = sigv4.ParseQuery(q.r.URL.RawQuery); err != nil {
		return err
	}
	q.target = parseTarget(q.r.Host, q.r.URL.Path, q.cfg.Bucket, q.cfg.Domains)
	op := route(q.r.Method, q.target, q.query, q.r.Header)
	q.stats.Operation = op.name
	// A browser's preflight is never signed.
	if q.r.Method != http.MethodOptions {
		if err := q.authenticate(); err != nil {
			return err
		}
		// A presigned URL may carry in its query what makes a PUT a copy.
		op = route(q.r.Method, q.target, q.query, q.r.Header)
		q.stats.Operation = op.name
	}
	if err := q.checkTarget(op.name); err != nil {
		return err
	}
	if err := q.countHops(); err != nil {
		return err
	}
	return op.serve(q)
}

func (q *request) authenticate() error {
	if q.cfg.Auth == AuthNone {
		q.contentSHA256 = q.r.Header.Get("X-Amz-Content-Sha256")
		if q.query.Has("X-Amz-Algorithm") {
			hoist(q.r.Header, q.query)
		}
		return nil
	}
	auth, err := sigv4.Verify(q.r, q.query, q.cfg.Keys, q.h.opts.Now())
	if err != nil {
		return err
	}
	q.auth, q.contentSHA256 = auth, auth.ContentSHA256
	if auth.Presigned {
		hoist(q.r.Header, q.query)
	}
	return nil
}

// countHops refuses a request that came through too many muxes, which are then
// each other's backends.
func (q *request) countHops() error {
	value := q.r.Header.Get(storage.HopHeader)
	if value == "" {
		return nil
	}
	hops, err := strconv.Atoi(value)
	if err != nil || hops < 0 {
		return invalidArgument("%s must be a number.", storage.HopHeader)
	}
	if hops >= storage.MaxHops {
		return storage.Errorf(storage.CodeRecursionDepthExceeded, "", "the request came through %d muxes", hops)
	}
	q.r = q.r.WithContext(storage.WithHops(q.r.Context(), hops))
	return nil
}

func (q *request) checkTarget(operation string) error {
	if q.target.bucket != "" && q.target.bucket != q.cfg.Bucket && operation != "CreateBucket" {
		return refuse("NoSuchBucket", http.StatusNotFound, "The specified bucket does not exist.")
	}
	switch {
	case q.target.key == "":
		return nil
	case q.target.key == storage.ProbeKey && (operation == "GetObject" || operation == "HeadObject"):
		// A mux whose store this is asks whether it is there and takes its
		// credentials. A refusal would say that it does not.
		return refuse("NoSuchKey", http.StatusNotFound, "The specified key does not exist.")
	}
	return checkKey(q.target.key)
}

// checkKey refuses keys that no client may use.
func checkKey(key string) error {
	switch err := storage.ValidateKey(key); {
	case len(key) > storage.MaxKeyBytes:
		return refuse("KeyTooLongError", http.StatusBadRequest, "Your key is too long; it may have %d bytes.", storage.MaxKeyBytes)
	case err != nil:
		return &apiError{Code: "InvalidURI", Status: http.StatusBadRequest, Message: "The key must be valid UTF-8 without NUL.", cause: err}
	case storage.IsReserved(key):
		return refuse("AccessDenied", http.StatusForbidden, "Keys that begin with %s are reserved.", storage.ReservedPrefix)
	}
	return nil
}

// begin sends the head of the answer.
func (q *request) begin(status int) {
	q.begun = true
	q.stats.Status = status
	q.stats.FirstByte = time.Since(q.start)
	q.client.armWrite()
	q.w.WriteHeader(status)
}

// fail answers with err, or cuts the connection where that is too late.
func (q *request) fail(err error) {
	e := toAPIError(err)
	q.failure = err
	q.stats.ErrorCode, q.stats.StorageCode = e.Code, string(e.StorageCode)
	// A client that stands still has its context cancelled too, but may listen.
	if context.Cause(q.r.Context()) != nil && e.Code != string(sigv4.CodeRequestTimeout) {
		q.stats.Status, q.stats.Aborted = StatusClientClosed, true
		panic(http.ErrAbortHandler)
	}
	if q.begun {
		q.stats.Aborted = true
		panic(http.ErrAbortHandler)
	}
	q.writeError(e)
}

func (q *request) writeError(e *apiError) {
	header := q.w.Header()
	for name, value := range e.Header {
		header.Set(name, value)
	}
	if e.StorageCode != "" {
		header["x-storagemux-error-code"] = []string{string(e.StorageCode)}
	}
	if e.Status == http.StatusServiceUnavailable {
		header["Retry-After"] = []string{e.retryAfter()}
	}
	if e.Status == http.StatusNotModified {
		q.begin(e.Status)
		return
	}
	// The client may be gone by now, which is its own affair.
	_ = q.writeDocument(e.Status, q.errorDocument(e))
}

// finish runs last, also when the answer was cut.
func (q *request) finish() {
	q.flush()
	if q.body != nil {
		q.stats.BytesIn = q.body.BytesRead()
		q.closeBody()
	}
	if !q.begun && q.stats.Status == 0 {
		// A panic is on its way to net/http, which logs it.
		q.stats.Status, q.stats.ErrorCode, q.stats.Aborted = http.StatusInternalServerError, internalError.code, true
	}
	q.stats.Duration = time.Since(q.start)
	q.h.opts.Metrics.RequestFinished(q.stats)
	q.endSpan()
	q.log()
}

// closeBody ends the reading of the body. A read that is under way hangs on the
// client while nobody waits for it any more: the deadline makes it return.
func (q *request) closeBody() {
	if !q.body.Close() {
		q.client.cutRead()
	}
}

// flush sends what net/http holds back while there is a deadline, and then takes
// that from the connection, which lives on.
func (q *request) flush() {
	if !q.begun || q.stats.Aborted {
		return
	}
	if q.stats.BytesOut > 0 {
		q.client.armWrite()
		// Whether the client is still there is its own affair.
		_ = q.client.controller.Flush()
	}
	q.client.clearWrite()
}

// servedBy notes who answered, and tells the client if that is wanted.
func (q *request) servedBy(member string) {
	if member == "" {
		return
	}
	q.stats.ServedBy = member
	if q.cfg.ServeBackendHeader {
		q.w.Header()["x-storagemux-backend"] = []string{member}
	}
}
