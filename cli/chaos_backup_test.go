package cli_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// chaosBackup is what is known of a completed backup.
type chaosBackup struct {
	id string
	// mu is held during operations on it.
	mu     sync.Mutex
	rows   *ledger // nil for the appliance's own backups
	began  time.Time
	ended  time.Time
	gone   bool // deleted, or possibly deleted
	missed bool // certainly deleted
}

// backUp makes a backup and waits for its end. It contains what was
// acknowledged before it began, and nothing from after its end.
func (c *chaos) backUp(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	began, rows := time.Now(), db.copyRows()
	b, err := api.CreateBackup(ctx, db.id)
	if c.outcome("back up", err, wire.CodeConflict) != done {
		return true
	}
	b, err = api.AwaitBackup(ctx, db.id, b.ID, nil)
	switch {
	case err != nil && !c.excused(began):
		c.t.Errorf("await a backup: %v", err)
	case err != nil:
	case b.Status == wire.BackupCompleted:
		rows.grow(len(db.copyRows().rows), possible)
		rows.of = " of the backup " + b.ID
		db.mu.Lock()
		db.backups = append(db.backups, &chaosBackup{id: b.ID, rows: rows, began: began, ended: time.Now()})
		db.mu.Unlock()
	case !c.excused(began) && !strings.HasPrefix(deref(b.Error), "it gave way to a restore"):
		c.t.Errorf("a backup that nothing disturbed failed: %s", deref(b.Error))
	}
	return true
}

// pickBackup draws a backup with known rows and locks it.
func (d *chaosDatabase) pickBackup(random *rand.Rand) *chaosBackup {
	d.mu.Lock()
	var known []*chaosBackup
	for _, b := range d.backups {
		if b.rows != nil && !b.gone {
			known = append(known, b)
		}
	}
	d.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	b := known[random.IntN(len(known))]
	if !b.mu.TryLock() {
		return nil
	}
	if b.gone {
		b.mu.Unlock()
		return nil
	}
	return b
}

// pin pins a backup, checks that it cannot be deleted, and unpins it.
func (c *chaos) pin(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	b := db.pickBackup(random)
	if b == nil {
		return false
	}
	defer b.mu.Unlock()
	_, err := api.PinBackup(ctx, db.id, b.id, wire.PinBackup{Pinned: new(true), Reason: new("chaos")})
	if c.outcome("pin", err, wire.CodeConflict) != done {
		return true
	}
	if _, err := api.DeleteBackup(ctx, db.id, b.id); c.outcome("delete a pinned backup", err, wire.CodeConflict) == done {
		c.t.Errorf("the pinned backup %s was deleted", b.id)
	}
	_, err = api.PinBackup(ctx, db.id, b.id, wire.PinBackup{Pinned: new(false)})
	c.outcome("unpin", err, wire.CodeConflict)
	return true
}

func (c *chaos) deleteBackup(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	b := db.pickBackup(random)
	if b == nil {
		return false
	}
	defer b.mu.Unlock()
	_, err := api.DeleteBackup(ctx, db.id, b.id)
	switch c.outcome("delete a backup", err, wire.CodeConflict) {
	case done:
		db.drop(b)
	case unknown:
		db.mu.Lock()
		b.gone = true
		db.mu.Unlock()
	}
	return true
}

func (d *chaosDatabase) drop(b *chaosBackup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b.gone, b.missed = true, true
	d.backups = slices.DeleteFunc(d.backups, func(o *chaosBackup) bool { return o == b })
}

// replace runs an operation that replaces the database's data by what is known
// of others, nil for what is in use, and records the result. The caller holds db.data.
func (c *chaos) replace(
	ctx context.Context, api *client.Client, db *chaosDatabase, what string, by *ledger,
	begin func() (wire.Operation, error), allowed ...wire.ErrorCode,
) {
	began, moves := time.Now(), c.clockMoves.Load()
	before, err := c.operations(ctx, api, db)
	if err != nil {
		return
	}
	db.mu.Lock()
	db.moving = true
	from := len(db.now.rows)
	db.mu.Unlock()
	defer func() {
		db.mu.Lock()
		db.moving = false
		db.mu.Unlock()
	}()
	op, err := begin()
	switch c.outcome(what, err, append(allowed, wire.CodeConflict)...) {
	case refused:
		return
	case unknown:
		if op = c.newOperation(ctx, api, db, before); op.ID == "" {
			return // it did not start
		}
	}
	if op, err = c.awaitOperation(ctx, api, op); err != nil {
		c.t.Errorf("%s: await the operation: %v", what, err)
		return
	}
	if op.Status != wire.OperationCompleted {
		if !c.excused(began) {
			c.t.Errorf("%s: nothing disturbed it, and it failed: %s", what, deref(op.Error))
		}
		return
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	old := db.now
	if by == nil {
		old = db.now.copy()
		old.doubt(from)
	} else {
		db.now = old.replaced(by, from)
	}
	db.other, db.since = old, time.Now()
	if moves%2 == 1 || c.clockMoves.Load() != moves {
		// The mark was timed by a clock that the server does not have, as on a
		// real machine: a time near the switch does not say which of the two
		// histories it means.
		db.marks, db.markedFrom = nil, db.since.Add(clockMoved)
	}
	c.count(what + ", completed")
}

func (c *chaos) operations(ctx context.Context, api *client.Client, db *chaosDatabase) (map[string]wire.Operation, error) {
	recovery, err := api.GetRecovery(ctx, db.id)
	known := map[string]wire.Operation{}
	for _, op := range recovery.Operations {
		known[op.ID] = op
	}
	return known, err
}

// newOperation finds the operation whose start was not acknowledged.
func (c *chaos) newOperation(ctx context.Context, api *client.Client, db *chaosDatabase, before map[string]wire.Operation) wire.Operation {
	for ctx.Err() == nil {
		c.awaitServing(ctx)
		now, err := c.operations(ctx, api, db)
		if err != nil {
			continue
		}
		for id, op := range now {
			if _, known := before[id]; !known && op.Type != "restart" {
				return op
			}
		}
		return wire.Operation{}
	}
	return wire.Operation{}
}

func (c *chaos) awaitOperation(ctx context.Context, api *client.Client, op wire.Operation) (wire.Operation, error) {
	return api.AwaitOperation(ctx, op, nil)
}

func (c *chaos) restoreInPlace(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.seizeDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.Unlock()
	b := db.pickBackup(random)
	if b == nil {
		return false
	}
	defer b.mu.Unlock()
	c.replace(ctx, api, db, "restore in place", b.rows, func() (wire.Operation, error) {
		return api.RestoreBackup(ctx, db.id, b.id, wire.RestoreBackup{})
	})
	return true
}

// undo brings back what the last restore replaced.
func (c *chaos) undo(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.seizeDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.Unlock()
	if db.other == nil {
		return false
	}
	c.replace(ctx, api, db, "undo", db.other, func() (wire.Operation, error) { return api.UndoRestore(ctx, db.id) })
	return true
}

// restoreToTime restores a database to a marked time.
func (c *chaos) restoreToTime(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.seizeDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.Unlock()
	m, target, ok := c.reachable(ctx, random, api, db)
	if !ok {
		return false
	}
	allowed, release := db.beyond(m)
	defer release()
	c.replace(ctx, api, db, "restore to a time", m.rows, func() (wire.Operation, error) {
		return api.RequestRestore(ctx, db.id, target)
	}, allowed...)
	return true
}

// reachable draws a mark inside the recovery window.
func (c *chaos) reachable(ctx context.Context, random *rand.Rand, api *client.Client, db *chaosDatabase) (m mark, target wire.RequestRestore, ok bool) {
	db.mu.Lock()
	marks, since := slices.Clone(db.marks), db.since
	db.mu.Unlock()
	recovery, err := api.GetRecovery(ctx, db.id)
	if err != nil || len(marks) == 0 || recovery.EarliestRestorableTime == nil || recovery.LatestRestorableTime == nil {
		return m, target, false
	}
	m = marks[random.IntN(len(marks))]
	if m.at.Before(*recovery.EarliestRestorableTime) || m.at.After(*recovery.LatestRestorableTime) {
		return m, target, false
	}
	if m.at.After(since) && random.IntN(2) == 0 {
		return m, wire.RequestRestore{TargetLSN: new(m.lsn)}, true
	}
	return m, wire.RequestRestore{TargetTime: &m.at}, !c.misdated(ctx, api, db, m)
}

// misdated reports whether a backup of what was written after a mark has a time from before it: the appliance's clock was
// set back, and not that of the server, which a machine's clock would have been too.
func (c *chaos) misdated(ctx context.Context, api *client.Client, db *chaosDatabase, m mark) bool {
	marked, err := xlog.ParseLSN(m.lsn)
	if err != nil {
		c.t.Error(err)
	}
	for b, err := range api.Backups(ctx, db.id, client.BackupOptions{}) {
		if err != nil {
			return true
		}
		if b.Status != wire.BackupCompleted || b.CompletedAt.After(m.at) {
			continue
		}
		if stop, err := xlog.ParseLSN(*b.StopLSN); err != nil || stop > marked {
			return true
		}
	}
	return false
}

// beyond returns the refusals that a mark allows: commits from shortly before
// other data took over may not have been archived, and without an earlier
// backup of this data no restore reaches them. It holds that backup until
// release.
func (d *chaosDatabase) beyond(m mark) (allowed []wire.ErrorCode, release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.backups {
		if b.rows == nil || b.began.Before(d.since) || b.ended.After(m.at) || !b.mu.TryLock() {
			continue
		}
		if !b.gone {
			return nil, b.mu.Unlock
		}
		b.mu.Unlock()
	}
	return []wire.ErrorCode{wire.CodeValidation}, func() {}
}

// restoreNew restores a backup or a marked time into a new database, compares
// its content, and deletes it.
func (c *chaos) restoreNew(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	name := c.name("restored")
	if random.IntN(2) == 0 {
		m, target, ok := c.reachable(ctx, random, api, db)
		if !ok {
			return false
		}
		allowed, release := db.beyond(m)
		defer release()
		target.Mode, target.Name = new(wire.RestoreNew), new(name)
		c.makeNew(ctx, api, db, name, m.rows, func() (wire.Operation, error) { return api.RequestRestore(ctx, db.id, target) }, allowed...)
		return true
	}
	b := db.pickBackup(random)
	if b == nil {
		return false
	}
	defer b.mu.Unlock()
	c.makeNew(ctx, api, db, name, b.rows, func() (wire.Operation, error) {
		return api.RestoreBackup(ctx, db.id, b.id, wire.RestoreBackup{Mode: new(wire.RestoreNew), Name: new(name)})
	})
	return true
}

// makeNew restores into a new database, and reports whether that succeeded.
func (c *chaos) makeNew(
	ctx context.Context, api *client.Client, db *chaosDatabase, name string, rows *ledger,
	begin func() (wire.Operation, error), allowed ...wire.ErrorCode,
) bool {
	began := time.Now()
	c.setUnsure(name, true)
	op, err := begin()
	if c.outcome("restore anew", err, append(allowed, wire.CodeConflict)...) != done {
		return false
	}
	op, err = c.awaitOperation(ctx, api, op)
	switch {
	case err != nil && !c.excused(began):
		c.t.Errorf("await a restore anew: %v", err)
	case err != nil:
	case op.Status == wire.OperationCompleted:
		failed := c.t.Failed()
		if c.lookAt(ctx, api, *op.NewDatabaseID, name, rows, began); c.t.Failed() && !failed {
			recovery, err := api.GetRecovery(ctx, db.id)
			text, _ := json.Marshal(recovery) // fails for no such value
			c.t.Logf("%s came from %s, of which the recovery is %s, %v", name, db, text, err)
		}
		return true
	case !c.excused(began):
		c.t.Errorf("a restore of %s anew that nothing disturbed failed: %s", db, deref(op.Error))
	}
	return false
}

// export downloads the newest export completely.
func (c *chaos) export(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	x, err := api.GetExport(ctx, db.id, "")
	if c.outcome("export", err, wire.CodeNotFound) != done || x.Status != wire.ExportReady {
		return true
	}
	body, err := api.OpenDownload(ctx, *x.DownloadURL, "", 0)
	if err != nil {
		return true // another export may have replaced it
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != *x.ChecksumSHA256 {
		c.t.Errorf("an export of %d bytes with the checksum %s: %s", n, got, describeExport(x))
	}
	return true
}

func describeExport(x wire.Export) string {
	return fmt.Sprintf("%s of %d bytes, checksum %s", x.ID, *x.SizeBytes, *x.ChecksumSHA256)
}
