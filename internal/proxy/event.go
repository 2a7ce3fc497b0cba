package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// wireEvent puts an event of the engine into the form of a report. Messages
// name members and codes; what stores answered stays in the proxy's log.
func wireEvent(e muxengine.Event) muxconfig.Event {
	wire := muxconfig.Event{
		Time: e.Time, Topic: string(e.Topic), Path: muxconfig.JoinPath(e.Path, e.Name), Code: string(e.Code),
	}
	switch e.Topic {
	case muxengine.TopicBackendDown:
		wire.Message = fmt.Sprintf("%s is down: %s", wire.Path, orCode(e.Code, e.Cause))
	case muxengine.TopicBackendRecovered:
		wire.Message = fmt.Sprintf("%s is up again after %s", wire.Path, round(e.DownFor))
	case muxengine.TopicFailover:
		wire.Path, wire.Code = muxconfig.JoinPath(e.Path, e.From), string(storage.CodeOf(e.Cause))
		wire.Message = fmt.Sprintf("a request went on from %s to %s: %s", wire.Path, e.To, orCode("", e.Cause))
	case muxengine.TopicFanoutPartial:
		wire.Path, wire.Code = e.Path, string(storage.CodeWriteFanoutPartial)
		wire.Message = fmt.Sprintf("a write did not reach %s", strings.Join(e.Failed, ", "))
	case muxengine.TopicDrainStarted:
		wire.Message = fmt.Sprintf("%s drains with %d request(s) in flight", wire.Path, e.InFlight)
	case muxengine.TopicDrainCompleted:
		wire.Message = fmt.Sprintf("%s has drained after %s", wire.Path, round(e.Drained))
	case muxengine.TopicBackendAdded:
		wire.Message = fmt.Sprintf("%s was added", wire.Path)
	case muxengine.TopicBackendRemoved:
		wire.Message = fmt.Sprintf("%s was removed", wire.Path)
	case muxengine.TopicWeightChanged:
		wire.Message = fmt.Sprintf("the weight of %s changed from %d to %d", wire.Path, e.FromWeight, e.ToWeight)
	}
	return wire
}

// isStateEvent tells events that change what a proxy is from those that
// requests cause.
func isStateEvent(topic muxengine.Topic) bool {
	return topic != muxengine.TopicFailover && topic != muxengine.TopicFanoutPartial
}

func orCode(code storage.Code, cause error) string {
	if code == "" {
		code = storage.CodeOf(cause)
	}
	if code == "" {
		return "no code"
	}
	return string(code)
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
