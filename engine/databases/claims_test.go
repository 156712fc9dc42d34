package databases

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// An operation that has marked its claims as ending makes way for the next, even
// while it is still cleaning up.
func TestClaimThatEnds(t *testing.T) {
	t.Parallel()
	c := core.NewClaims()
	take := func(id, what string) func() {
		t.Helper()
		release, err := c.Take(id, what)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	restore, backups := take("db_1", "a restore"), take(BackupClaim("db_1"), "a restore")
	if _, err := c.Take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restore: %v", err)
	}
	endClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationRestore})
	next := make(chan func(), 2)
	go func() { next <- take("db_1", "a restart") }()
	go func() { next <- take(BackupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	restore()
	backups()
	(<-next)()
	(<-next)()

	// A backup that runs alongside another operation ends on its own.
	backup, restart := take(BackupClaim("db_1"), "a backup"), take("db_1", "a restart")
	endClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationRestart})
	if _, err := c.Take(BackupClaim("db_1"), "a backup"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a backup: %v", err)
	}
	endClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationBackup})
	go func() { next <- take(BackupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	restart()
	backup()
	(<-next)()

	// A restore into another database holds that one and the backups of the source.
	made, backups, restart := take("db_2", "the creation"), take(BackupClaim("db_1"), "a restore"), take("db_1", "a restart")
	endClaims(c, model.DatabaseOperation{Database: "db_1", NewDatabase: "db_2", Type: model.OperationRestore})
	if _, err := c.Take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restart: %v", err)
	}
	go func() { next <- take("db_2", "a restart") }()
	go func() { next <- take(BackupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	made()
	backups()
	restart()
	(<-next)()
	(<-next)()
	for _, id := range []string{"db_1", "db_2", BackupClaim("db_1")} {
		take(id, "a check")()
	}
}

// mustWait fails the test if an operation begins while another blocks it.
func mustWait(t *testing.T, next <-chan func()) {
	t.Helper()
	select {
	case <-next:
		t.Fatal("two acts at once")
	case <-time.After(20 * time.Millisecond): // there is no event to wait for
	}
}

// Once a record shows that an operation is done, no other operation is refused,
// however long the first takes to learn of the commit.
func TestClaimEndsBeforeItsRecord(t *testing.T) {
	t.Parallel()
	s := openRoom(t)
	db := s.insert(t, "shop")
	release, err := s.core.Claims.Take(db.ID, "a restart")
	if err != nil {
		t.Fatal(err)
	}
	op, err := s.beginOperation(db, model.OperationRestart, model.DatabaseRestarting, "restarting")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	recorded := make(chan error, 1)
	go func() {
		recorded <- s.core.Meta.Update(func(tx *meta.Tx) error {
			tx.OnCommit(func() { <-seen })
			_, err := s.ReleaseDatabase(tx, op, nil)
			return err
		})
	}()
	testenv.Eventually(t, "the record of an available database", func() bool {
		now, err := s.Record(db.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.Status == model.DatabaseAvailable
	})
	next := make(chan error, 1)
	go func() {
		_, err := s.core.Claims.Take(db.ID, "another restart")
		next <- err
	}()
	select {
	case err := <-next:
		t.Errorf("it is done, and %v", err)
		next <- nil
	case <-time.After(20 * time.Millisecond): // it waits
	}
	close(seen)
	if err := <-recorded; err != nil {
		t.Error(err)
	}
	release()
	if err := <-next; err != nil {
		t.Error(err)
	}
}
