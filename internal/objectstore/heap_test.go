package objectstore_test

import (
	"io"
	"runtime/metrics"
	"testing"
	"time"
)

// watchHeap watches the live heap. The function it returns ends that and returns by
// how many bytes it was larger than at the beginning, at most.
func watchHeap(t *testing.T) (peak func() uint64) {
	t.Helper()
	begin, most := liveHeap(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			most = max(most, liveHeap())
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return most - min(most, begin)
	}
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func count(t *testing.T, r io.Reader) int64 {
	t.Helper()
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		t.Error(err)
	}
	return n
}
