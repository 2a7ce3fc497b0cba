package s3

import (
	"context"
	"net/http"
	"time"
)

// abortTimeout bounds the removal of the parts of a failed upload.
const abortTimeout = 10 * time.Second

// abortLater removes the parts of an upload that failed, without making the
// failed write wait for it. Close waits for it.
func (s *Storage) abortLater(key, upload string) {
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), abortTimeout)
		defer cancel()
		resp, err := s.send(ctx, &request{op: "Abort", method: http.MethodDelete, key: key, query: query{{"uploadId", upload}}})
		if err == nil {
			drain(resp)
		}
	})
}
