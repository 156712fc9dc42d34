package blobstore

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"

	"holdfast/internal/durable/faultfs"
)

// BenchmarkPublish reports the time of a durable blob with its note, and the number of syncs (of files and
// directories) that it took.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1 << 10, 8 << 20} {
		for _, parallel := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%dKiB/x%d", size>>10, parallel), func(b *testing.B) {
				benchmarkPublish(b, size, parallel)
			})
		}
	}
}

func benchmarkPublish(b *testing.B, size, parallel int) {
	counter := &faultfs.FS{}
	s := openStore(b, b.TempDir(), Options{fs: counter})
	content := make([]byte, size)
	rand.Read(content)
	before := counter.Syncs()
	b.SetBytes(int64(size))
	b.SetParallelism(max(1, parallel/runtime.GOMAXPROCS(0)))
	if parallel == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := publishAndRemove(b, s, content); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(counter.Syncs()-before)/float64(b.N), "syncs/blob")
}

// publishAndRemove also removes large blobs, so that a long run fits on the disk.
func publishAndRemove(b *testing.B, s *Store, content []byte) error {
	w, err := s.Create(b.Context())
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	ref, err := w.Publish(make([]byte, 600), nil)
	if err != nil || len(content) < 1<<20 {
		return err
	}
	return s.Remove(ref)
}
