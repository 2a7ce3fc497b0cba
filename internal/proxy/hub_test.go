package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

func answers(h *hub, boot string, seq uint64) bool {
	answer, _ := h.news(boot, seq)
	return answer
}

func TestOnlyChangesOfStateAnswerAPoll(t *testing.T) {
	h := newHub()
	if !answers(h, "", 0) || !answers(h, "another", 0) {
		t.Error("a foreign boot id is not answered at once")
	}
	if answers(h, h.bootID, 0) {
		t.Error("a poll was answered although nothing happened")
	}
	_, woken := h.news(h.bootID, 0)
	h.requestEvent(muxconfig.Event{Topic: "storage-mux.failover", Path: "a", Time: time.Now()})
	if answers(h, h.bootID, 0) {
		t.Error("a failover answered a poll")
	}
	h.changed()
	select {
	case <-woken:
	default:
		t.Error("a change did not wake who waits")
	}
	seq, events := h.since(h.bootID, 0)
	if seq != 2 || len(events) != 1 || !answers(h, h.bootID, 1) || answers(h, h.bootID, 2) {
		t.Errorf("after an event and a change seq is %d with %d events", seq, len(events))
	}
	if !answers(h, h.bootID, 3) {
		t.Error("a cursor from the future is not answered at once")
	}
}

func TestEventsAreHandedOnOnceAndTheRingKeepsTheNewest(t *testing.T) {
	h := newHub()
	for i := range muxconfig.MaxReportEvents + 10 {
		h.stateEvent(muxconfig.Event{Message: fmt.Sprint(i)})
	}
	seq, events := h.since(h.bootID, 0)
	if len(events) != muxconfig.MaxReportEvents || events[0].Message != "10" || events[len(events)-1].Seq != seq {
		t.Fatalf("the ring holds %d events from %q to seq %d of %d", len(events), events[0].Message, events[len(events)-1].Seq, seq)
	}
	if _, events := h.since(h.bootID, seq-2); len(events) != 2 {
		t.Errorf("two events back there are %d", len(events))
	}
	if _, events := h.since("another", seq); len(events) != muxconfig.MaxReportEvents {
		t.Errorf("a foreign cursor gets %d events", len(events))
	}
}

func TestEventsOfRequestsAreLimitedPerMember(t *testing.T) {
	h, now := newHub(), time.Now()
	event := func(path string, after time.Duration) bool {
		return h.requestEvent(muxconfig.Event{Topic: "storage-mux.failover", Path: path, Time: now.Add(after)})
	}
	event("a", 0)
	for i := range 5 {
		if event("a", time.Duration(i)*time.Millisecond) {
			t.Error("an event followed another at once")
		}
	}
	if !event("b", 0) {
		t.Error("another member's event was left out")
	}
	if !event("a", quietInterval) {
		t.Error("a second later an event was left out")
	}
	if _, events := h.since(h.bootID, 2); len(events) != 1 || events[0].Message != " (and 5 more like it)" {
		t.Errorf("it reads %+v", events)
	}
	for i := range 10 * maxQuiet {
		event(fmt.Sprint(i), 0)
	}
	if len(h.quiet) > maxQuiet {
		t.Errorf("%d members are remembered", len(h.quiet))
	}
}

func TestCloseAnswersWhoWaits(t *testing.T) {
	h := newHub()
	_, woken := h.news(h.bootID, 0)
	h.close()
	h.close()
	<-woken
	if !answers(h, h.bootID, 0) {
		t.Error("a poll waits after close")
	}
	h.changed()
}
