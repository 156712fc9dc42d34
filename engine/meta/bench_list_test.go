package meta

import (
	"fmt"
	"testing"
)

// BenchmarkNewestObjects lists 100 of a million objects. The newest half begins with
// "new/", the other half with "old/"; one in a hundred, evenly spread, with "some/";
// and one in ten thousand with "few/", whose page reads every partition.
func BenchmarkNewestObjects(b *testing.B) {
	const n = 1_000_000
	db := openTest(b)
	db.bolt.NoSync = true
	update(b, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	for from := 0; from < n; from += 10_000 {
		for i := from; i < from+10_000; i++ {
			o := object("bucket_1", benchKey(i, n), i)
			o.Segment = 1
			enqueueOn(db, uint64(i+1), func(tx *Tx) error { return putOne(tx, o) })
		}
		view(b, db, func(*Tx) error { return nil })
	}
	for _, prefix := range []string{"", "new/", "some/", "old/", "few/", "none/"} {
		b.Run("prefix="+prefix, func(b *testing.B) {
			for b.Loop() {
				view(b, db, func(tx *Tx) error {
					_, _, err := tx.NewestObjects("bucket_1", prefix, "", 100)
					return err
				})
			}
		})
	}
	b.Run("folder", func(b *testing.B) {
		for b.Loop() {
			view(b, db, func(tx *Tx) error {
				f, err := tx.ListFolder("bucket_1", "", "/", "", 100)
				if len(f.Prefixes) != 4 {
					b.Errorf("folders %v", f.Prefixes)
				}
				return err
			})
		}
	})
}

func benchKey(i, n int) string {
	hash := uint32(i) * 2654435761
	switch {
	case i%10_000 == 77:
		return fmt.Sprintf("few/%08x", hash)
	case i%100 == 13:
		return fmt.Sprintf("some/%08x", hash)
	case i < n/2:
		return fmt.Sprintf("old/%08x", hash)
	default:
		return fmt.Sprintf("new/%08x", hash)
	}
}
