package meta

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/model"
)

// BenchmarkSync measures the disk: a write and an fdatasync, of which each commit needs
// at least two in sequence.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := f.WriteAt(page, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdate commits a record and its audit entry, as an operation does.
func BenchmarkUpdate(b *testing.B) {
	for _, writers := range []int{1, 8, 32, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			db := openTest(b)
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range writers {
				all.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						if err := db.Update(func(tx *Tx) error { return recordOne(tx, n) }); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

func recordOne(tx *Tx, n int64) error {
	id := fmt.Sprintf("%012d", n)
	if err := tx.Projects().Insert(project("proj_"+id, "org_1", id)); err != nil {
		return err
	}
	entry := auditEntry(n)
	return tx.AppendAudit(testChain(0), &entry)
}

// auditEntry returns an entry of typical size.
func auditEntry(n int64) model.AuditEntry {
	return model.AuditEntry{
		ID: fmt.Sprintf("evt_01jd%022d", n), At: time.Unix(n, 0).UTC(), Organization: "org_1",
		Actor:  model.Actor{Type: model.ActorKey, ID: "key_01jd0000000000000000000000", Name: "deploy"},
		Action: model.ActionDatabaseGet, Outcome: model.OutcomeSuccess,
		Resource:  model.Resource{Type: model.ResourceDatabase, ID: "db_01jd0000000000000000000000", Name: "app"},
		RequestID: "01jd0000000000000000000000", IP: "192.0.2.1", UserAgent: "holdfast/1.0 (linux; amd64)",
	}
}

// BenchmarkAppendAudit writes the entries of reads, many per sync.
func BenchmarkAppendAudit(b *testing.B) {
	for _, tt := range []struct {
		batch int
		keep  uint64
	}{{1, 0}, {64, 0}, {1024, 0}, {1024, 5000}} {
		b.Run(fmt.Sprintf("batch=%d/keep=%d", tt.batch, tt.keep), func(b *testing.B) {
			db := openTest(b)
			var n int64
			for b.Loop() {
				update(b, db, func(tx *Tx) error {
					entries := make([]*model.AuditEntry, tt.batch)
					for i := range entries {
						entry := auditEntry(n + int64(i))
						entries[i] = &entry
					}
					return tx.AppendAudit(testChain(tt.keep), entries...)
				})
				n += int64(tt.batch)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func BenchmarkVerifyAudit(b *testing.B) {
	db := openTest(b)
	const entries = 20_000
	update(b, db, func(tx *Tx) error {
		for n := range int64(entries) {
			entry := auditEntry(n)
			if err := tx.AppendAudit(testChain(0), &entry); err != nil {
				return err
			}
		}
		return nil
	})
	for b.Loop() {
		if count, err := verifyAudit(b, db, "org_1"); count != entries || err != nil {
			b.Fatal(count, err)
		}
	}
	b.ReportMetric(float64(b.N)*entries/b.Elapsed().Seconds(), "entries/s")
}

// BenchmarkNewest lists 50 of 100,000 records: the first page, one in the
// middle, and the last.
func BenchmarkNewest(b *testing.B) {
	db := openTest(b)
	const records = 100_000
	id := func(n int) string { return fmt.Sprintf("db_%08d", n) }
	update(b, db, func(tx *Tx) error {
		for n := range records {
			d := model.Database{ID: id(n), Organization: "org_1", Project: "proj_1", Name: id(n)}
			if err := tx.Databases().Insert(d); err != nil {
				return err
			}
		}
		return nil
	})
	for _, tt := range []struct{ name, after string }{{"first", ""}, {"middle", id(records / 2)}, {"last", id(50)}} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				view(b, db, func(tx *Tx) error {
					page, _, err := tx.Databases().Newest(ByOrganization, Key("org_1"), tt.after, 50)
					if len(page) != 50 {
						b.Fatalf("the page has %d", len(page))
					}
					return err
				})
			}
		})
	}
}

// BenchmarkDropBucket drops a bucket of 100,000 objects and measures the time and memory
// of the transaction that answers.
func BenchmarkDropBucket(b *testing.B) {
	db := openTest(b)
	next := 1
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		id := fmt.Sprintf("bucket_%d", n)
		update(b, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket(id)) })
		next = fill(b, db, id, next, 100_000)
		b.StartTimer()
		update(b, db, func(tx *Tx) error { return tx.DropBucket(id) })
	}
}
