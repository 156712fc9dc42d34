package cli_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// The machine burns: everything is killed under load and the data directory is removed. `recover` brings it back from the
// copy off-site into an empty directory. Everything that was acknowledged before the moment that the status names must be there,
// nothing may be there that no client wrote, and a row or an object of later may be either way.

// burn kills and recovers everything. Before, all was seen to be in order.
func (c *chaos) burn(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*chaosPatience)
	defer cancel()
	c.awaitBackups(ctx, c.clients[0])
	c.m.awaitCopied()
	if c.t.Failed() {
		return
	}
	c.faulty.Add(1)
	var lasting map[*chaosDatabase]*ledger
	c.loadObjects(random, time.Duration(random.IntN(5000))*time.Millisecond, func() {
		lasting = c.noteLasting()
		c.m.awaitCopied()
		c.m.killAll()
	})
	c.quiet.Lock()
	if err := os.RemoveAll(c.m.dataDir); err != nil {
		c.t.Fatal(err)
	}
	began := time.Now()
	c.m.recoverFrom(c.copy, c.flags()...)
	answered := time.Since(began)
	c.compareRecovered(ctx, lasting)
	c.quiet.Unlock()
	c.faulty.Add(-1)
	c.count("recover from the copy")
	c.t.Logf("recovered: the API answered after %s, everything after %s", answered.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	c.check(random)
}

// awaitBackups makes a backup of every database that has none of its present data, as after an upgrade whose own failed on
// the full disk: it could not be recovered.
func (c *chaos) awaitBackups(ctx context.Context, api *client.Client) {
	for _, db := range c.databases {
		made := false
		for b, err := range api.Backups(ctx, db.id, client.BackupOptions{}) {
			made = made || err == nil && b.Status == wire.BackupCompleted && b.StartedAt.After(db.since.Add(clockMoved))
		}
		if made {
			continue
		}
		b, err := api.CreateBackup(ctx, db.id)
		if err == nil {
			b, err = api.AwaitBackup(ctx, db.id, b.ID, func(wire.Operation) {})
		}
		if err != nil || b.Status != wire.BackupCompleted {
			c.t.Errorf("a backup of %s: %s, %v", db, b.Status, err)
		}
	}
}

// noteLasting returns the rows that must survive from now on, by database, and has objects remember every version that is
// possible from now on.
func (c *chaos) noteLasting() map[*chaosDatabase]*ledger {
	lasting := map[*chaosDatabase]*ledger{}
	for _, db := range c.databases {
		db.mu.Lock()
		lasting[db] = db.now.copy()
		db.mu.Unlock()
	}
	c.eachObject(func(o *chaosObject) { o.remembers = true })
	return lasting
}

func (c *chaos) eachObject(do func(*chaosObject)) {
	for _, b := range c.buckets {
		for i := range b.objects {
			o := &b.objects[i]
			o.mu.Lock()
			do(o)
			o.mu.Unlock()
		}
	}
}

// chaosLoad are the acts on objects that go on until everything is killed.
var chaosLoad = []string{"put", "delete an object", "get", "put by S3", "delete by S3", "copy by S3", "get by S3"}

// loadObjects has clients change objects for some time, while the writers of rows go on, and calls end in the middle of it.
func (c *chaos) loadObjects(random *rand.Rand, life time.Duration, end func()) {
	over, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	acts := slices.DeleteFunc(slices.Clone(chaosActs), func(a chaosAct) bool { return !slices.Contains(chaosLoad, a.name) })
	seed := random.Uint64()
	var actors sync.WaitGroup
	for i, api := range c.clients {
		actors.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for over.Err() == nil {
				ctx, cancel := context.WithTimeout(over, chaosPatience)
				if !acts[random.IntN(len(acts))].do(c, ctx, random, api) { // it had no target
					time.Sleep(5 * time.Millisecond)
				}
				cancel()
			}
		})
	}
	select {
	case <-time.After(life): // how long the load lasts
	case <-c.t.Context().Done():
	}
	end()
	cancel()
	actors.Wait()
}

// compareRecovered waits for the databases and compares their rows with those that must have survived.
func (c *chaos) compareRecovered(ctx context.Context, lasting map[*chaosDatabase]*ledger) {
	api := c.clients[0]
	for db, must := range lasting {
		c.within("the recovery of "+db.String(), func() string {
			record, err := api.GetDatabase(ctx, db.id)
			if err != nil || record.Status != wire.DatabaseAvailable {
				return fmt.Sprintf("it is %s %s, %v", record.Status, deref(record.StatusReason), err)
			}
			return ""
		})
		url, err := c.connectionURL(ctx, db)
		if err != nil {
			c.t.Errorf("the connection of %s: %v", db, err)
			continue
		}
		found, err := readLedger(ctx, url)
		db.mu.Lock()
		must.grow(len(db.now.rows), possible)
		if err == nil {
			err = must.compare(found)
		}
		if err != nil {
			c.t.Errorf("recovered: %s: %v", db, err)
		}
		must.learn(found)
		db.now.rows = must.rows
		db.other, db.marks, db.markedFrom = nil, nil, time.Now()
		db.mu.Unlock()
	}
	for _, b := range c.buckets {
		c.checkObjects(ctx, api, b, rand.New(rand.NewPCG(1, 1)))
	}
	// The copy may end between the deletion of a database and that of its backups.
	for _, name := range names(filepath.Join(c.m.dataDir, "quarantine")) {
		if strings.HasSuffix(name, "-backups") {
			if err := os.RemoveAll(filepath.Join(c.m.dataDir, "quarantine", name)); err != nil {
				c.t.Error(err)
			}
		}
	}
	c.eachObject(func(o *chaosObject) { o.remembers = false })
	c.mu.Lock()
	clear(c.changes) // the last of them may be lost with their entries
	c.mu.Unlock()
}
