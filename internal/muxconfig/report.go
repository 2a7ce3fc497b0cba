package muxconfig

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ReportPath is where the admin port serves a Report. Its query parameters are
// ReportCursorParam, a cursor from the last report, and ReportWaitParam, how
// long the answer may wait for something newer (a duration, at most MaxReportWait).
const (
	ReportPath        = "/v1/report"
	ReportCursorParam = "cursor"
	ReportWaitParam   = "wait"
	MaxReportWait     = 30 * time.Second
)

// MaxReportEvents is the length of a proxy's ring of events.
const MaxReportEvents = 256

// Report is what one proxy knows.
type Report struct {
	// BootID is new with each start of the proxy. Seq rises with each change
	// of state, acknowledgement, rejection or drain progress, not with
	// figures.
	BootID string `json:"bootID"`
	Seq    uint64 `json:"seq"`
	// MinSchema and MaxSchema are the document versions the proxy reads.
	MinSchema int `json:"minSchema"`
	MaxSchema int `json:"maxSchema"`
	// Time is the proxy's clock.
	Time time.Time `json:"time"`

	// Applied is the document that is served, nil before the first.
	Applied *Applied `json:"applied,omitempty"`
	// Rejection is the newest document that was refused, nil once a later
	// one was accepted.
	Rejection *Rejection `json:"rejection,omitempty"`

	Totals  Totals         `json:"totals"`
	Members []MemberReport `json:"members"`
	// Events are those after the caller's cursor that the ring still holds.
	Events []Event `json:"events,omitempty"`
}

// Applied identifies the document that a proxy serves.
type Applied struct {
	Revision    int64  `json:"revision"`
	Transitions int64  `json:"transitions"`
	Hash        string `json:"hash"`
}

// Rejection says which document was refused and why.
type Rejection struct {
	Revision int64  `json:"revision"`
	Hash     string `json:"hash,omitempty"`
	Message  string `json:"message"`
}

// Totals are counts of one mux since the proxy started.
type Totals struct {
	Calls          int64 `json:"calls"`
	Failovers      int64 `json:"failovers"`
	FanoutPartials int64 `json:"fanoutPartials"`
}

// MemberState is the state of one member in one proxy.
type MemberState string

// Member states.
const (
	StateUp       MemberState = "up"
	StateDown     MemberState = "down"
	StateDraining MemberState = "draining"
)

// MemberReport describes the member at Path. Latencies are in microseconds.
type MemberReport struct {
	Path string `json:"path"`
	// Backend or Mux is the resource behind the member, UID its identity.
	Backend string      `json:"backend,omitempty"`
	Mux     string      `json:"mux,omitempty"`
	UID     string      `json:"uid"`
	State   MemberState `json:"state"`

	Figures
	// Totals are those of a nested mux at this place, nil for a backend.
	Totals *Totals `json:"totals,omitempty"`

	ConsecutiveFailures int32        `json:"consecutiveFailures"`
	LastTransitionTime  time.Time    `json:"lastTransitionTime,omitzero"`
	LastError           *MemberError `json:"lastError,omitempty"`
	Capabilities        []string     `json:"capabilities,omitempty"`
	Drain               *DrainReport `json:"drain,omitempty"`
	// Refused says why the store refused the newest credentials of the
	// document, so that the ones before are still in use. They are tried
	// again until the store takes them.
	Refused *MemberError `json:"refused,omitempty"`
}

// Figures are one member's numbers.
type Figures struct {
	Hits     int64 `json:"hits"`
	Misses   int64 `json:"misses"`
	Errors   int64 `json:"errors"`
	Timeouts int64 `json:"timeouts"`
	Aborts   int64 `json:"aborts"`
	InFlight int64 `json:"inFlight"`

	LastLatency int64 `json:"lastLatencyMicros"`
	P50Latency  int64 `json:"p50LatencyMicros"`
	P99Latency  int64 `json:"p99LatencyMicros"`
}

// MemberError is the last error that took a member down, without secrets.
type MemberError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// DrainReport is what a proxy says of a member that is on its way out, under
// the applied revision.
type DrainReport struct {
	Phase DrainPhase `json:"phase"`
	// InFlight are the requests that still run on the member: all of them
	// in phase Granted, writes alone in phase ReadOnly. OpenUploads are the
	// multipart uploads of the store that the drain waits for.
	InFlight    int64 `json:"inFlight"`
	OpenUploads int64 `json:"openUploads"`
	// Done: InFlight is zero and will stay so, and so is OpenUploads unless
	// the deadline has passed.
	Done bool `json:"done"`
	// StoreEmpty tells whether the store held no object when it was listed
	// after the member was Done; nil while that is not known, and for a
	// member of a mux with keyspace replicated.
	StoreEmpty *bool `json:"storeEmpty,omitempty"`
}

// Event is something that happened in a proxy. Its Seq is the Report.Seq from
// which on a report holds it; an event that is no change of state waits for
// the next report and answers no long poll by itself. Topic is one of the nine of the
// specification.
type Event struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Topic   string    `json:"topic"`
	Path    string    `json:"path,omitempty"`
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message"`
}

// Cursor returns the cursor to ask with for what comes after r.
func (r *Report) Cursor() string { return FormatCursor(r.BootID, r.Seq) }

// FormatCursor makes a cursor.
func FormatCursor(bootID string, seq uint64) string {
	return fmt.Sprintf("%s.%d", bootID, seq)
}

// ParseCursor splits a cursor. An empty one is before everything.
func ParseCursor(cursor string) (bootID string, seq uint64, err error) {
	if cursor == "" {
		return "", 0, nil
	}
	bootID, number, ok := strings.Cut(cursor, ".")
	if seq, err = strconv.ParseUint(number, 10, 64); !ok || bootID == "" || err != nil {
		return "", 0, invalid(ReportCursorParam, "%q must be BOOTID.SEQ", cursor)
	}
	return bootID, seq, nil
}
