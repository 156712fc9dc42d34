package meta

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCapture commits as BenchmarkUpdate does, with 32 writers and without syncs: while
// nobody captures, and while everything is captured and read.
func BenchmarkCapture(b *testing.B) {
	for _, captured := range []bool{false, true} {
		b.Run(fmt.Sprintf("captured=%t", captured), func(b *testing.B) {
			db := openTest(b)
			db.bolt.NoSync = true
			if captured {
				c := capture(b, db, 16<<20)
				done := make(chan struct{})
				var reader sync.WaitGroup
				reader.Go(func() {
					for {
						select {
						case <-done:
							return
						case <-time.After(10 * time.Millisecond):
							for len(c.Next(1<<20, time.Time{})) > 0 {
								continue
							}
						}
					}
				})
				defer reader.Wait()
				defer close(done)
			}
			var next atomic.Int64
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range 32 {
				all.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if err := db.Update(func(tx *Tx) error { return recordOne(tx, n) }); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
		})
	}
}

// BenchmarkChunks reads the whole content of a store with 100,000 objects.
func BenchmarkChunks(b *testing.B) {
	db := openTest(b)
	db.bolt.NoSync = true
	update(b, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	for from := 0; from < 100_000; from += 10_000 {
		update(b, db, func(tx *Tx) error {
			for i := range 10_000 {
				if err := putOne(tx, object("bucket_1", fmt.Sprintf("key/%06d", from+i), from+i+1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for b.Loop() {
		var bytes int64
		for chunk, err := range db.Chunks() {
			if err != nil {
				b.Fatal(err)
			}
			bytes += int64(len(chunk))
		}
		b.SetBytes(bytes)
	}
}
