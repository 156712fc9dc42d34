package cli_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// chaosDatabases is the maximum number of databases, besides those created to
// check a backup.
const chaosDatabases = 4

// chaosDatabase is what is known of a database.
type chaosDatabase struct {
	id, name string
	// data is held exclusively by operations that replace or remove the data,
	// and shared by all others, so that the content a restore brings back is
	// known.
	data sync.RWMutex
	// access is held by changes of the login settings, and of roles.
	access sync.Mutex
	roles  []*chaosRole

	mu         sync.Mutex
	now, other *ledger // other is what an undo brings back
	backups    []*chaosBackup
	marks      []mark
	markedFrom time.Time // no mark is earlier
	since      time.Time // when now came into use
	moving     bool      // other data is taking over
	passwords  []string  // each may be the current one
	outdated   string    // a password that is certainly not current
	lists      []string  // each may be the current allow-list
	sleeps     []int64   // each may be after how many seconds it sleeps; 0 is never
	restUntil  time.Time // the writers leave it alone
	created    chaosCreated
	gone       bool // deleted, or possibly deleted
	missed     bool // missing, or unknown
}

// mark is a point in time and the content at it.
type mark struct {
	at   time.Time
	lsn  string
	rows *ledger
}

// openLists are the allow-lists with which a database can be reached, in
// canonical form.
var openLists = []string{"127.0.0.0/8 ::1", "127.0.0.1", "0.0.0.0/0 ::/0", "10.0.0.0/8 127.0.0.0/8"}

const closedList = "10.0.0.0/8"

// adopt records a database and starts writers for it.
func (c *chaos) adopt(id, name, password string, rows *ledger) {
	db := &chaosDatabase{id: id, name: name, now: rows, passwords: []string{password}, lists: openLists[:1], sleeps: []int64{0}, since: time.Now()}
	c.mu.Lock()
	c.databases = append(c.databases, db)
	c.mu.Unlock()
	c.writers.Go(func() { c.writeByDriver(db) })
	c.writers.Go(func() { c.writeByPsql(db) })
}

// forget removes a database from the model.
func (c *chaos) forget(db *chaosDatabase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.databases = slices.DeleteFunc(c.databases, func(d *chaosDatabase) bool { return d == db })
}

// pickDatabase draws a database and locks it shared; nil if there is none, or
// if the one drawn is being replaced.
func (c *chaos) pickDatabase(random *rand.Rand) *chaosDatabase {
	db := c.drawDatabase(random)
	if db == nil || !db.data.TryRLock() {
		return nil
	}
	if db.gone {
		db.data.RUnlock()
		return nil
	}
	return db
}

// pickToChange draws a database whose settings, roles or extensions are changed, and locks those too, until endChange.
func (c *chaos) pickToChange(random *rand.Rand) *chaosDatabase {
	db := c.pickDatabase(random)
	if db != nil {
		db.access.Lock()
	}
	return db
}

func (d *chaosDatabase) endChange() {
	d.access.Unlock()
	d.data.RUnlock()
}

// seizeDatabase draws a database and locks it exclusively.
func (c *chaos) seizeDatabase(random *rand.Rand) *chaosDatabase {
	db := c.drawDatabase(random)
	if db == nil || !db.data.TryLock() {
		return nil
	}
	if db.gone {
		db.data.Unlock()
		return nil
	}
	return db
}

func (c *chaos) drawDatabase(random *rand.Rand) *chaosDatabase {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := random.IntN(chaosDatabases)
	if n >= len(c.databases) {
		return nil
	}
	return c.databases[n]
}

func (c *chaos) hasRoomForDatabase() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.databases) < chaosDatabases
}

// createDatabase creates a database. If the response is lost, it retries with
// the same idempotency key: then the database must exist, or there is a
// conflict.
func (c *chaos) createDatabase(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	c.mu.Lock()
	full := len(c.databases)+c.making >= chaosDatabases
	if !full {
		c.making++
	}
	c.mu.Unlock()
	if full {
		return false
	}
	defer func() {
		c.mu.Lock()
		c.making--
		c.mu.Unlock()
	}()
	name := c.name("db")
	ctx = client.WithIdempotencyKey(ctx, name)
	in := wire.CreateDatabase{Project: c.project, Name: name, Version: &c.oldest}
	if random.IntN(3) == 0 {
		in.Version = &c.newest
	}
	for try := range 3 {
		began := time.Now()
		made, err := api.CreateDatabase(ctx, in)
		switch c.outcome("create a database", err, wire.CodeConflict) {
		case done:
			if made.Status != wire.DatabaseAvailable && !c.excused(began) { // its server may have been killed
				c.t.Errorf("a new database is %s", made.Status)
			}
			c.setUnsure(name, false)
			c.adopt(made.ID, name, made.Credentials.Password, &ledger{})
			return true
		case refused:
			if try == 0 && client.CodeOf(err) == wire.CodeConflict && !c.excused(time.Now()) {
				c.t.Errorf("a new name is refused: %v", err)
			}
			return true
		case unknown:
			c.setUnsure(name, true)
			c.awaitServing(ctx)
		}
	}
	return true
}

func (c *chaos) setUnsure(name string, unsure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if unsure {
		c.unsure[name] = true
	} else {
		delete(c.unsure, name)
	}
}

// awaitServing returns when the appliance responds.
func (c *chaos) awaitServing(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := c.clients[0].GetLimits(ctx); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *chaos) deleteDatabase(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	if c.hasRoomForDatabase() && random.IntN(4) > 0 { // keep some databases
		return false
	}
	db := c.seizeDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.Unlock()
	deleted, err := api.DeleteDatabase(ctx, db.id)
	switch c.outcome("delete a database", err, wire.CodeConflict) {
	case done:
		if !deleted.Deleted {
			c.t.Errorf("deleted: %+v", deleted)
		}
		db.leave(true)
		c.forget(db)
	case unknown:
		db.leave(false)
	}
	return true
}

// leave records that a database is deleted, or may be.
func (d *chaosDatabase) leave(surely bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone, d.missed = true, surely
}

func (d *chaosDatabase) isGone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

func (c *chaos) restart(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	began := time.Now()
	record, err := api.RestartDatabase(ctx, db.id)
	if c.outcome("restart", err, wire.CodeConflict) == done && record.Status != wire.DatabaseAvailable && !c.excused(began) {
		c.t.Errorf("restarted, and %s", record.Status)
	}
	return true
}

// rotate rotates a database's password. The old one must stop working.
func (c *chaos) rotate(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickToChange(random)
	if db == nil {
		return false
	}
	defer db.endChange()
	rotated, err := api.RotateDatabasePassword(ctx, db.id, wire.RotatePassword{TerminateSessions: new(random.IntN(2) == 0)})
	db.mu.Lock()
	defer db.mu.Unlock()
	switch c.outcome("rotate", err, wire.CodeConflict) {
	case done:
		if len(db.passwords) == 1 {
			db.outdated = db.passwords[0]
		}
		db.passwords = []string{known(rotated.Password)}
	case unknown:
		db.passwords = append(db.passwords, "") // one that was never returned
	}
	return true
}

// allow replaces the allow-list, sometimes with one that admits no address.
func (c *chaos) allow(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickToChange(random)
	if db == nil {
		return false
	}
	defer db.endChange()
	if random.IntN(3) > 0 {
		c.setAllowlist(ctx, api, db, openLists[random.IntN(len(openLists))])
		return true
	}
	if c.setAllowlist(ctx, api, db, closedList) == done {
		c.mustBeShutOut(ctx, api, db)
	}
	for ctx.Err() == nil && c.setAllowlist(ctx, api, db, openLists[0]) != done {
		time.Sleep(100 * time.Millisecond)
	}
	return true
}

func (c *chaos) setAllowlist(ctx context.Context, api *client.Client, db *chaosDatabase, list string) outcome {
	answer, err := api.ReplaceDatabaseAllowlist(ctx, db.id, wire.ReplaceAllowlist{Entries: strings.Fields(list)})
	is := c.outcome("replace the allow-list", err, wire.CodeConflict)
	db.mu.Lock()
	defer db.mu.Unlock()
	switch is {
	case done:
		if got := strings.Join(answer.Entries, " "); got != list {
			c.t.Errorf("the allow-list %s is answered as %s", list, got)
		}
		db.lists = []string{list}
	case unknown:
		db.lists = append(db.lists, list)
	}
	return is
}

// mustBeShutOut checks that a closed list refuses connections.
func (c *chaos) mustBeShutOut(ctx context.Context, api *client.Client, db *chaosDatabase) {
	connection, err := api.GetDatabaseConnection(ctx, db.id, client.ConnectionOptions{})
	if err != nil {
		return
	}
	conn, err := pgx.Connect(ctx, connection.ConnectionURL)
	if err == nil {
		conn.Close(ctx)
		c.t.Errorf("%s is reached although its allow-list is %s", db.name, closedList)
	}
}

func (c *chaos) rowSecurity(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.pickDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.RUnlock()
	enabled := random.IntN(2) == 0
	table, err := api.SetDatabaseRLS(ctx, db.id, wire.SetRLS{Table: "tally", Enabled: enabled})
	// The table does not exist before the first row.
	if c.outcome("row-level security", err, wire.CodeConflict, wire.CodeNotFound) == done && table.RLSEnabled != enabled {
		c.t.Errorf("row-level security was set to %t and is %t", enabled, table.RLSEnabled)
	}
	return true
}

// importDatabase imports a database of the appliance into another. The source
// must not be restarted meanwhile; only rows are written to it.
func (c *chaos) importDatabase(ctx context.Context, random *rand.Rand, api *client.Client) bool {
	db := c.seizeDatabase(random)
	if db == nil {
		return false
	}
	defer db.data.Unlock()
	db.access.Lock()
	defer db.access.Unlock()
	source, err := api.GetDatabaseConnection(ctx, db.id, client.ConnectionOptions{})
	if err != nil {
		return false
	}
	began, name, rows := time.Now(), c.name("import"), db.copyRows()
	c.setUnsure(name, true)
	started, err := api.CreateImport(ctx, wire.CreateImport{Project: c.project, Name: name, SourceURL: source.ConnectionURL})
	if c.outcome("import", err, wire.CodeConflict) != done {
		return true
	}
	ended, err := api.AwaitImport(ctx, started.ID, nil)
	rows.grow(len(db.copyRows().rows), possible)
	switch {
	case err != nil && !c.excused(began):
		c.t.Errorf("await an import: %v", err)
	case err != nil:
	case ended.Status == wire.ImportCompleted, ended.Status == wire.ImportCompletedWithErrors && onlyLacksExtensions(ended.Errors):
		c.lookAt(ctx, api, ended.DatabaseID, name, rows, began)
	case !c.excused(began):
		c.t.Errorf("an import that nothing disturbed is %s: %v %+v", ended.Status, deref(ended.Error), ended.Errors)
	}
	return true
}

// onlyLacksExtensions reports whether an import left out nothing but extensions that the appliance creates: an import
// creates those that owners may create.
func onlyLacksExtensions(errors []wire.ImportFlaw) bool {
	return !slices.ContainsFunc(errors, func(e wire.ImportFlaw) bool { return !strings.HasPrefix(e.Object, "EXTENSION ") })
}

// copyRows returns a copy of what is known of the rows.
func (d *chaosDatabase) copyRows() *ledger {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.copy()
}

// lookAt compares a database created from another with the expected content,
// and deletes it.
func (c *chaos) lookAt(ctx context.Context, api *client.Client, id, name string, rows *ledger, began time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*chaosPatience) // the act has used up its time
	defer cancel()
	var found map[int]bool
	ok := c.within("reading "+name, func() string {
		connection, err := api.GetDatabaseConnection(ctx, id, client.ConnectionOptions{})
		if client.CodeOf(err) == wire.CodeNotFound {
			return "it is not there"
		}
		if err == nil {
			found, err = readLedger(ctx, connection.ConnectionURL)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	if !ok {
		return
	}
	if err := rows.compare(found); err != nil {
		c.t.Errorf("%s: %v", name, err)
	}
	if _, err := api.DeleteDatabase(ctx, id); c.outcome("delete a copy", err, wire.CodeConflict) == done {
		c.setUnsure(name, false)
	}
}

func deref[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}

// logIn returns the error of connecting as the owner with a password.
func (d *chaosDatabase) logIn(ctx context.Context, url, password string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.Password = password
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// wrongPassword is PostgreSQL's SQLSTATE for a wrong password.
const wrongPassword = "28P01"

func isWrongPassword(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Code == wrongPassword
}

// String returns the database's name for messages.
func (d *chaosDatabase) String() string { return fmt.Sprintf("%s (%s)", d.name, d.id) }
