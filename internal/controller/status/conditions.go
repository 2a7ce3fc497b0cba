package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/render"
)

// verdict is a condition before it has a type, a generation and a time.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func isTrue(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)}
}

func isFalse(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

func isUnknown(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionUnknown, reason, fmt.Sprintf(format, args...)}
}

func fromRender(v render.Verdict) verdict {
	if v.OK {
		return isTrue(v.Reason, "%s", v.Message)
	}
	return isFalse(v.Reason, "%s", v.Message)
}

// maxMessage is what the API server takes as a condition's message.
const maxMessage = 32768

// conditionSet writes into a list of conditions, for one generation of an
// object at one time.
type conditionSet struct {
	list       *[]metav1.Condition
	generation int64
	now        time.Time
}

func (s conditionSet) set(kind string, v verdict) {
	meta.SetStatusCondition(s.list, metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: cut(v.message, maxMessage),
		ObservedGeneration: s.generation, LastTransitionTime: metav1.NewTime(s.now.UTC().Truncate(time.Second)),
	})
}

// setWhileTrue is for conditions that are there only while they are true.
func (s conditionSet) setWhileTrue(kind string, v *verdict) {
	if v == nil {
		meta.RemoveStatusCondition(s.list, kind)
		return
	}
	s.set(kind, *v)
}

// keep leaves a condition as it is, if there is one, and reports whether so. It
// only takes note of the new generation.
func (s conditionSet) keep(kind string) bool {
	c := meta.FindStatusCondition(*s.list, kind)
	if c == nil {
		return false
	}
	c.ObservedGeneration = s.generation
	return true
}

// stalled is the condition Stalled of an object that the user must mend.
func stalled(accepted verdict) *verdict {
	if accepted.status != metav1.ConditionFalse {
		return nil
	}
	v := isTrue(accepted.reason, "%s", accepted.message)
	return &v
}

// storeReason tells why a store cannot be used, from the code of its last error.
func storeReason(code string) string {
	switch code {
	case "STORAGE.ACCESS_DENIED", "STORAGE.CREDENTIAL_EXPIRED":
		return v1alpha1.ReasonBadCredentials
	case "STORAGE.BUCKET_NOT_FOUND":
		return v1alpha1.ReasonBucketNotFound
	default:
		return v1alpha1.ReasonUnreachable
	}
}
