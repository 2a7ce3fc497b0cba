package fallbackuri

import "time"

// Topic names what happened.
type Topic string

// The topics.
const (
	// TopicCycleDetected: a candidate was passed over that leads back to where
	// the walk came from.
	TopicCycleDetected Topic = "storage-uri.fallback.cycle-detected"
	// TopicFellThrough: a candidate did not answer and the walk went on.
	TopicFellThrough Topic = "storage-uri.fallback.fell-through"
	// TopicWritePartial: a write or delete that succeeded, or failed, did not
	// reach every candidate.
	TopicWritePartial Topic = "storage-uri.fallback.write-partial"
	// TopicListPartial: a list lacks the keys of a candidate.
	TopicListPartial Topic = "storage-uri.fallback.list-partial"
)

// Event is something that happened in a walk. URIs are redacted.
type Event struct {
	Topic Topic
	Time  time.Time
	// Name is that of Options, URI the fallback URI, Op the operation.
	Name, URI, Op string
	// Candidate: of cycle-detected and fell-through.
	Candidate string
	// Index of that candidate, from 0.
	Index int
	// Err: of fell-through. What its causes say may hold a URL with its query;
	// muxengine.Describe leaves that out.
	Err error
	// Failed are the candidates that were missed: of write-partial and
	// list-partial.
	Failed []CandidateError
}

func (l *Ladder) emit(e Event) {
	if l.opts.Events == nil {
		return
	}
	e.Time, e.Name, e.URI = time.Now(), l.opts.Name, l.shown
	l.opts.Events(e)
}
