package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
)

func TestClassifyDecidesByCodeThenStatusThenContext(t *testing.T) {
	status := func(code int) error { return &Error{Code: CodeUnavailable, Status: code} }
	tests := map[string]struct {
		err  error
		want Class
	}{
		"nil":                               {nil, ClassNone},
		"not found":                         {ErrKeyNotFound, ClassSemantic},
		"wrapped not found":                 {fmt.Errorf("reading: %w", ErrKeyNotFound), ClassSemantic},
		"precondition":                      {ErrPreconditionFailed, ClassSemantic},
		"not modified":                      {ErrNotModified, ClassSemantic},
		"unsupported":                       {ErrUnsupported, ClassSemantic},
		"expired credentials":               {&Error{Code: CodeCredentialExpired}, ClassSemantic},
		"missing bucket":                    {&Error{Code: CodeBucketNotFound}, ClassSemantic},
		"no space":                          {ErrNoSpace, ClassTransient},
		"throttled":                         {&Error{Code: CodeThrottled, Status: 429}, ClassTransient},
		"all down":                          {ErrAllBackendsDown, ClassTransient},
		"timeout":                           {ErrBackendTimeout, ClassTransient},
		"draining":                          {ErrBackendDraining, ClassTransient},
		"partial fan-out":                   {&Error{Code: CodeWriteFanoutPartial}, ClassSemantic},
		"recursion":                         {&Error{Code: CodeRecursionDepthExceeded}, ClassSemantic},
		"aborted":                           {ErrBackendAborted, ClassAbort},
		"status 500":                        {status(500), ClassTransient},
		"status 501":                        {status(501), ClassSemantic},
		"status 503":                        {status(503), ClassTransient},
		"status 508":                        {status(508), ClassSemantic},
		"status 408":                        {status(408), ClassTransient},
		"status 429":                        {status(429), ClassTransient},
		"status 418":                        {status(418), ClassSemantic},
		"no answer":                         {&Error{Code: CodeUnavailable, Cause: syscall.ECONNREFUSED}, ClassTransient},
		"unknown code":                      {&Error{Code: "STORAGE.FROM_THE_FUTURE"}, ClassTransient},
		"unknown error":                     {errors.New("?"), ClassTransient},
		"reset":                             {syscall.ECONNRESET, ClassTransient},
		"cut body":                          {io.ErrUnexpectedEOF, ClassTransient},
		"caller left":                       {context.Canceled, ClassAbort},
		"caller's deadline":                 {context.DeadlineExceeded, ClassAbort},
		"interrupted by the caller":         {&Error{Code: CodeUnavailable, Cause: context.Canceled}, ClassAbort},
		"interrupted by our timer":          {&Error{Code: CodeUnavailable, Cause: CauseTimeout}, ClassTransient},
		"answer that came although we left": {&Error{Code: CodeUnavailable, Status: 503, Cause: context.Canceled}, ClassTransient},
		"outermost code wins":               {&Error{Code: CodeAllBackendsDown, Cause: ErrKeyNotFound}, ClassTransient},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Classify(tt.err); got != tt.want {
				t.Errorf("Classify(%v) = %s, want %s", tt.err, got, tt.want)
			}
		})
	}
}

func TestInterruptedHasTheClassOfTheContextsCause(t *testing.T) {
	for cause, want := range map[error]Class{context.Canceled: ClassAbort, CauseTimeout: ClassTransient, CauseDrain: ClassTransient} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if got := Classify(Interrupted(ctx, "Stat", "asking")); got != want {
			t.Errorf("interrupted by %v: class %s, want %s", cause, got, want)
		}
	}
}

func TestErrorComparesByCodeAndSaysWhatWasAttempted(t *testing.T) {
	err := fmt.Errorf("outer: %w", Errorf(CodeNoSpace, "SetStream", "storing %q", "k").WithCause(syscall.ENOSPC))
	if !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrKeyNotFound) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("errors.Is does not see through %v", err)
	}
	if CodeOf(err) != CodeNoSpace || CodeOf(io.EOF) != "" {
		t.Error("CodeOf does not give the outermost code")
	}
	want := `outer: STORAGE.NO_SPACE: SetStream: storing "k": no space left on device`
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
