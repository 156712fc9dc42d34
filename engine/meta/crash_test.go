package meta

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestKilledProcessLosesNothing kills a committing process at random moments. Every
// acknowledged change must exist, and every change must be complete.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meta.db")
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	total := 0
	for round := range rounds {
		acknowledged := killWhileCommitting(t, path, round)
		total += len(acknowledged)
		db, err := Open(path)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		view(t, db, func(tx *Tx) error {
			for _, id := range acknowledged {
				_, projectErr := tx.Projects().Find(ByName, Key("org_1", id))
				_, objectErr := tx.Object("bucket_1", id)
				if err := errors.Join(projectErr, objectErr); err != nil {
					t.Errorf("round %d: %s was acknowledged: %v", round, id, err)
				}
			}
			audited, err := verifyAudit(t, db, "org_1")
			bucket, bucketErr := tx.Buckets().Get("bucket_1")
			if made := countKeys(tx.Projects().bucket()); made != audited || int64(made) != bucket.ObjectCount {
				t.Errorf("round %d: %d projects, %d audit entries, %d objects", round, made, audited, bucket.ObjectCount)
			}
			return errors.Join(err, bucketErr)
		})
		if err := errors.Join(check(db), db.Close()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if total == 0 {
		t.Error("nothing was ever acknowledged: the test proves nothing")
	}
}

// killWhileCommitting returns the ids that the process acknowledged before it was
// killed.
func killWhileCommitting(t *testing.T, path string, round int) (acknowledged []string) {
	t.Helper()
	writer := helper(t, "commit", path, fmt.Sprint(round))
	stdout, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	life := time.Duration(rand.IntN(60)) * time.Millisecond
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // an incomplete line was not acknowledged
		}
		if len(acknowledged) == 0 {
			time.AfterFunc(life, func() { _ = writer.Process.Kill() })
		}
		acknowledged = append(acknowledged, line[:len(line)-1])
	}
	if err := writer.Wait(); err == nil || writer.ProcessState.Exited() {
		t.Fatalf("the writer was not killed: %v", err)
	}
	return acknowledged
}

// commitUntilKilled runs in the process: it makes changes of several parts and
// acknowledges each.
func commitUntilKilled(path, round string) {
	db, err := Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = db.Update(func(tx *Tx) error {
		if _, err := tx.Buckets().Get("bucket_1"); err == nil {
			return nil
		}
		return tx.Buckets().Insert(model.Bucket{ID: "bucket_1", Organization: "org_1", Project: "proj_1", Name: "objects"})
	})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%s-%d-%d", round, w, n)
				if err := db.Update(func(tx *Tx) error { return changeOfParts(tx, id) }); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				_, _ = os.Stdout.WriteString(id + "\n")
			}
		})
	}
	all.Wait()
}

func changeOfParts(tx *Tx, id string) error {
	return errors.Join(
		tx.Projects().Insert(project("proj_"+id, "org_1", id)),
		tx.AppendAudit(testChain(0), &model.AuditEntry{ID: "evt_" + id, Organization: "org_1"}),
		putOne(tx, model.Object{Bucket: "bucket_1", Key: id, Version: fmt.Sprintf("%-26s", id), Blob: "blob-" + id, SizeBytes: 1}),
	)
}
