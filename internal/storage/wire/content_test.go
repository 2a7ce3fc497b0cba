package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestAHeadIsReadInOneBuffer(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	for _, tt := range []struct{ have, size, limit int64 }{
		{0, 0, 10}, {0, -1, 10}, {5, 5, 10}, {5, -1, 10}, {10, 10, 10}, {11, 11, 10}, {100_000, 100_000, 65_537}, {100_000, -1, 65_537}, {5, 1 << 40, 10},
	} {
		got, err := ReadHead(bytes.NewReader(data[:tt.have]), tt.size, tt.limit)
		if want := data[:min(tt.have, tt.limit)]; err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: read %d bytes, %v", tt, len(got), err)
		}
	}
	allocations := func(size int64) float64 {
		return testing.AllocsPerRun(10, func() { _, _ = ReadHead(bytes.NewReader(data[:size]), size, size+1) })
	}
	if small, large := allocations(10), allocations(65_536); large > small {
		t.Errorf("a large head takes %.0f allocations and a small one %.0f", large, small)
	}
	broken := errors.New("broken")
	if _, err := ReadHead(io.MultiReader(bytes.NewReader(data[:5]), iotest.ErrReader(broken)), -1, 10); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}
