package s3

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// trial finds out whether a store verifies checksums. One that does needs no
// SHA-256 of every byte to know that it has a whole body: a CRC-32 says as much at
// a tenth of the cost. Many services speak S3 and not all verify; some even store
// the framing of a trailer they do not know. So nothing is assumed: the store is
// sent one byte under a reserved key with a checksum that is wrong, once in a
// header and once in a trailer, and is trusted if it refuses both for that reason.
type trial struct {
	running atomic.Bool
	verdict atomic.Pointer[verdict]
}

type verdict struct {
	verifies bool
	// until is when a store that does not verify is tried again.
	until time.Time
}

const (
	trialTime = 30 * time.Second
	// trialAgain is when a store is tried again that could not be asked, and
	// trialLater when one is that does not verify.
	trialAgain = time.Minute
	trialLater = 24 * time.Hour
	// checksumFrom is the size from which a CRC-32 is worth a trial.
	checksumFrom = 8 << 10

	crc32Header = "X-Amz-Checksum-Crc32"
)

// verifies reports whether the store is known to verify checksums. While it is
// not known, that is found out in the background.
func (s *Storage) verifies(k keys) bool {
	if k.id == "" {
		return false
	}
	if v := s.trial.verdict.Load(); v != nil && (v.verifies || time.Now().Before(v.until)) {
		return v.verifies
	}
	if s.trial.running.CompareAndSwap(false, true) {
		s.background.Go(func() {
			defer s.trial.running.Store(false)
			s.trial.verdict.Store(s.tryChecksums())
		})
	}
	return false
}

func (s *Storage) tryChecksums() *verdict {
	ctx, cancel := context.WithTimeout(context.Background(), trialTime)
	defer cancel()
	key := fmt.Sprintf("%schecksum-%016x", storage.ReservedTmp, rand.Uint64())
	for _, send := range []func(context.Context, string) error{s.sendWrongHeader, s.sendWrongTrailer} {
		switch err := send(ctx, key); {
		case storage.CodeOf(err) == storage.CodeInvalidBody:
		case err == nil:
			// It was stored, checksum or no. What cannot be removed is a byte
			// under a key that is hidden.
			_ = s.Delete(ctx, key)
			return &verdict{until: time.Now().Add(trialLater)}
		case storage.Classify(err) == storage.ClassSemantic:
			return &verdict{until: time.Now().Add(trialLater)}
		default:
			return &verdict{until: time.Now().Add(trialAgain)}
		}
	}
	return &verdict{verifies: true}
}

var trialBody = []byte("x")

func (s *Storage) sendWrongHeader(ctx context.Context, key string) error {
	wrong := crc32.ChecksumIEEE(trialBody) ^ 1
	return s.sendTrial(ctx, key, http.Header{crc32Header: {encodeCRC32(wrong)}}, unsignedPayload, fromBytes(trialBody))
}

func (s *Storage) sendWrongTrailer(ctx context.Context, key string) error {
	header := http.Header{}
	addTrailer(header, "", int64(len(trialBody)))
	data := "1\r\nx\r\n0\r\n" + trailerName + ":" + encodeCRC32(crc32.ChecksumIEEE(trialBody)^1) + "\r\n\r\n"
	return s.sendTrial(ctx, key, header, unsignedTrailer, fromBytes([]byte(data)))
}

func (s *Storage) sendTrial(ctx context.Context, key string, header http.Header, payload string, c *content) error {
	w := &write{store: s, ctx: ctx, op: "SetStream", key: key}
	_, _, err := w.send(ctx, &request{method: http.MethodPut, header: header, payload: payload}, c)
	return err
}
