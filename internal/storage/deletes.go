package storage

import "context"

// ConditionalDeleter is implemented by stores that can tie a removal to what is
// there, so that one object is not removed in the place of another.
type ConditionalDeleter interface {
	// DeleteIf removes key if conditions, of which IfMatch alone has a meaning,
	// hold at that moment. Codes: PRECONDITION_FAILED, and KEY_NOT_FOUND where
	// there is nothing under key.
	DeleteIf(ctx context.Context, key string, conditions Conditions) error
}

// DeleteIf is Delete of s under conditions; a store that knows none of them
// answers UNSUPPORTED and keeps the object.
func DeleteIf(ctx context.Context, s Storage, key string, conditions Conditions) error {
	if conditions.IsZero() {
		return s.Delete(ctx, key)
	}
	if d, ok := s.(ConditionalDeleter); ok {
		return d.DeleteIf(ctx, key, conditions)
	}
	return Errorf(CodeUnsupported, "Delete", "the backend removes objects without conditions only")
}
