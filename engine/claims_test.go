package engine

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// Who was told that an act is done may go on, though it still tidies up.
func TestClaimThatEnds(t *testing.T) {
	t.Parallel()
	c := newClaims()
	take := func(id, what string) func() {
		t.Helper()
		release, err := c.take(id, what)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	restore, backups := take("db_1", "a restore"), take(backupClaim("db_1"), "a restore")
	if _, err := c.take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restore: %v", err)
	}
	c.end("db_1")
	next := make(chan func(), 2)
	go func() { next <- take("db_1", "a restart") }()
	go func() { next <- take(backupClaim("db_1"), "a backup") }()
	select {
	case <-next:
		t.Fatal("two acts at once")
	case <-time.After(20 * time.Millisecond): // nothing can be waited for: it must not come
	}
	restore()
	backups()
	(<-next)()
	(<-next)()

	// A backup beside another act ends by itself.
	backup, restart := take(backupClaim("db_1"), "a backup"), take("db_1", "a restart")
	c.end("db_1")
	if _, err := c.take(backupClaim("db_1"), "a backup"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a backup: %v", err)
	}
	restart()
	backup()
	if len(c.held) > 0 {
		t.Errorf("%d claims are left", len(c.held))
	}
}
