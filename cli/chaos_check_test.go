package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// check compares everything with the model while there are no requests and no
// faults.
func (c *chaos) check(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*chaosPatience)
	defer cancel()
	c.quiet.Lock()
	defer c.quiet.Unlock()
	api := c.clients[0]
	for _, part := range []func(){
		func() { c.awaitDatabases(ctx, api) },
		func() { c.awaitBuckets(ctx, api) },
		func() { c.checkDatabases(ctx, api) },
		func() { c.checkBuckets(ctx, api, random) },
		func() { c.checkKeys(ctx) },
		func() { c.checkRestorable(ctx, api, random) },
		func() { c.checkUsage(ctx, api) },
		func() { c.checkAudit(ctx) },
		func() { c.checkLeftovers(ctx, api) },
	} {
		if part(); c.t.Failed() {
			return // what follows would report the same
		}
	}
}

func (c *chaos) checkDatabases(ctx context.Context, api *client.Client) {
	for _, db := range c.databases {
		c.checkAccess(ctx, api, db)
		c.checkRows(ctx, api, db)
		c.checkBackups(ctx, api, db)
	}
}

func (c *chaos) checkBuckets(ctx context.Context, api *client.Client, random *rand.Rand) {
	for _, b := range c.buckets {
		c.checkObjects(ctx, api, b, random)
	}
}

// collect returns all items of a list by the key that key returns.
func collect[T any](c *chaos, list iter.Seq2[T, error], key func(T) string) map[string]T {
	all := map[string]T{}
	for item, err := range list {
		if err != nil {
			c.t.Errorf("list: %v", err)
			break
		}
		if _, twice := all[key(item)]; twice {
			c.t.Errorf("%s is listed twice", key(item))
		}
		all[key(item)] = item
	}
	return all
}

// awaitDatabases waits until no database has an operation and all servers answer, removes those whose
// creation was not acknowledged, and compares the list with the model. A server that crashed is available
// until the appliance notices it, or while the server recovers by itself.
func (c *chaos) awaitDatabases(ctx context.Context, api *client.Client) {
	var listed map[string]wire.Database
	c.within("quiet among the databases", func() string {
		listed = collect(c, api.Databases(ctx, client.DatabaseOptions{}), func(d wire.Database) string { return d.ID })
		for _, d := range listed {
			if d.Status != wire.DatabaseAvailable || d.Operation != nil {
				return fmt.Sprintf("%s (%s) is %s %s, operation %+v", d.Name, d.ID, d.Status, deref(d.StatusReason), d.Operation)
			}
			if err := serverAnswers(ctx, d); err != nil {
				return fmt.Sprintf("the server of %s (%s): %v", d.Name, d.ID, err)
			}
		}
		return ""
	})
	for _, db := range slices.Clone(c.databases) {
		_, there := listed[db.id]
		if !there && !db.gone {
			c.t.Errorf("the database %s was acknowledged and is lost", db)
		}
		if db.gone { // it was unknown
			c.forget(db)
			c.unsure[db.name] = true
			continue
		}
		delete(listed, db.id)
	}
	for id, d := range listed {
		if !c.unsure[d.Name] {
			c.t.Errorf("the database %s (%s) is there and was never made, or deleted", d.Name, id)
		}
		if _, err := api.DeleteDatabase(ctx, id); err != nil {
			c.t.Errorf("delete a database that nobody was told of: %v", err)
		}
	}
}

// serverAnswers returns an error while a server is down or starts. One that does not let the client in answers.
func serverAnswers(ctx context.Context, d wire.Database) error {
	conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://nobody@%s:%d/postgres", d.Host, d.Port))
	if err == nil {
		return conn.Close(ctx)
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Code != "57P03" {
		return nil
	}
	return err
}

func (c *chaos) awaitBuckets(ctx context.Context, api *client.Client) {
	listed := collect(c, api.Buckets(ctx, client.BucketOptions{}), func(b wire.Bucket) string { return b.ID })
	for _, b := range slices.Clone(c.buckets) {
		_, there := listed[b.id]
		if there {
			c.abortUploads(ctx, b)
		} else {
			if !b.gone {
				c.t.Errorf("the bucket %s was acknowledged and is lost", b.name)
			}
			c.buckets = slices.DeleteFunc(c.buckets, func(o *chaosBucket) bool { return o == b })
		}
		b.gone = false // it was not deleted after all
		delete(listed, b.id)
	}
	for id, b := range listed {
		if !c.unsure[b.Name] {
			c.t.Errorf("the bucket %s (%s) is there and was never made, or deleted", b.Name, id)
		}
		if _, err := api.DeleteBucket(ctx, id, false); err != nil {
			c.t.Errorf("delete an empty bucket that nobody was told of: %v", err)
		}
	}
}

// checkAccess checks that the allow-list and the password are the acknowledged
// ones, and that both users can connect.
func (c *chaos) checkAccess(ctx context.Context, api *client.Client, db *chaosDatabase) {
	list, err := api.GetDatabaseAllowlist(ctx, db.id)
	if got := strings.Join(list.Entries, " "); err != nil || !slices.Contains(db.lists, got) {
		c.t.Errorf("the allow-list of %s is %q, %v, and not one of %q", db, got, err, db.lists)
	}
	if record, err := api.GetDatabase(ctx, db.id); err != nil {
		c.t.Errorf("%s: %v", db, err)
	} else if after := deref(record.SleepAfterSeconds); !slices.Contains(db.sleeps, after) {
		c.t.Errorf("%s sleeps after %d s, and may after %d", db, after, db.sleeps)
	} else {
		db.sleeps = []int64{after}
	}
	if c.setAllowlist(ctx, api, db, openLists[0]) != done {
		c.t.Errorf("the allow-list of %s cannot be set", db)
	}
	owner, err := api.GetDatabaseConnection(ctx, db.id, client.ConnectionOptions{})
	if err != nil || !slices.Contains(db.passwords, known(owner.Password)) && !slices.Contains(db.passwords, "") {
		c.t.Errorf("the password of %s is another than was acknowledged: %v", db, err)
		return
	}
	db.passwords = []string{known(owner.Password)}
	if err := db.logIn(ctx, owner.ConnectionURL, known(owner.Password)); err != nil {
		c.t.Errorf("the owner of %s cannot log in: %v", db, err)
	}
	if db.outdated != "" && db.outdated != known(owner.Password) {
		if err := db.logIn(ctx, owner.ConnectionURL, db.outdated); !isWrongPassword(err) {
			c.t.Errorf("a password of %s that was replaced: %v", db, err)
		}
	}
	c.checkRoles(ctx, api, db, owner.ConnectionURL)
	c.checkExtensions(ctx, db, owner.ConnectionURL)
	reader, err := c.reader().GetDatabaseConnection(ctx, db.id, client.ConnectionOptions{})
	if err != nil || !reader.ReadOnly {
		c.t.Errorf("the connection of %s to read: %v", db, err)
	} else if err := db.logIn(ctx, reader.ConnectionURL, known(reader.Password)); err != nil {
		c.t.Errorf("who may read %s cannot log in: %v", db, err)
	}
}

// known returns a connection's password, "" if SQL changed it.
func known(password *string) string {
	if password == nil {
		return ""
	}
	return *password
}

// reader returns a client that may only read.
func (c *chaos) reader() *client.Client {
	for _, k := range c.keys {
		if k.revoked == refused {
			return c.client(k.secret)
		}
	}
	return c.client(createKey(c.t, c.m, "--preset", "read_only", "--name", "reader"))
}

func (c *chaos) checkRows(ctx context.Context, api *client.Client, db *chaosDatabase) {
	owner, err := api.GetDatabaseConnection(ctx, db.id, client.ConnectionOptions{})
	if err != nil {
		c.t.Errorf("the connection of %s: %v", db, err)
		return
	}
	found, err := readLedger(ctx, owner.ConnectionURL)
	if err == nil {
		err = db.now.compare(found)
	}
	if err != nil {
		c.t.Errorf("%s: %v", db, err)
		return
	}
	db.now.learn(found)
}

// checkBackups waits until no backup is running, and compares the list with the
// model, the files and the program's own verification.
func (c *chaos) checkBackups(ctx context.Context, api *client.Client, db *chaosDatabase) {
	completed := map[string]bool{}
	c.within("quiet among the backups of "+db.String(), func() string {
		clear(completed)
		for id, b := range collect(c, api.Backups(ctx, db.id, client.BackupOptions{}), func(b wire.Backup) string { return b.ID }) {
			switch b.Status {
			case wire.BackupCompleted:
				completed[id] = true
				if b.Verification.Status == wire.VerificationFailed {
					c.t.Errorf("the verification of %s of %s failed: %s", id, db, deref(b.Verification.Detail))
				}
			case wire.BackupPending, wire.BackupRunning:
				return fmt.Sprintf("%s is %s", id, b.Status)
			}
		}
		return ""
	})
	var known []*chaosBackup
	for _, b := range db.backups {
		if !completed[b.id] && !b.gone {
			c.t.Errorf("the backup %s of %s was acknowledged and is lost", b.id, db)
		}
		if completed[b.id] {
			b.gone = false
			known = append(known, b)
		}
	}
	db.backups = known
	if len(completed) > 0 {
		c.verifyBackups(ctx, api, db, completed)
	}
	recovery, err := api.GetRecovery(ctx, db.id)
	if err != nil || len(recovery.WALArchiving.Gaps) > 0 {
		c.t.Errorf("recovery of %s: %v, gaps %+v", db, err, recovery.WALArchiving.Gaps)
	}
}

// verifyBackups runs the program's verification of all of a database's backups.
func (c *chaos) verifyBackups(ctx context.Context, api *client.Client, db *chaosDatabase, completed map[string]bool) {
	report, code := verifyVault(c.t, filepath.Join(c.m.dataDir, "backups", db.id))
	if code != 0 || len(report.Damage) > 0 {
		c.t.Errorf("backup verify of %s: code %d, %d backups are completed: %+v", db, code, len(completed), report)
	}
	found := map[string]bool{}
	for _, b := range report.Backups {
		found[b.ID] = true
		if !completed[b.ID] { // the appliance may have made another meanwhile
			other, err := api.GetBackup(ctx, db.id, b.ID)
			completed[b.ID] = err == nil && other.Status == wire.BackupCompleted
		}
		if !b.Restorable || !completed[b.ID] {
			c.t.Errorf("backup verify of %s: %+v", db, b)
		}
	}
	for id := range completed {
		if !found[id] {
			c.t.Errorf("backup verify of %s does not know %s: %+v", db, id, report)
		}
	}
}

// checkRestorable restores one of the backups.
func (c *chaos) checkRestorable(ctx context.Context, api *client.Client, random *rand.Rand) {
	for _, db := range c.databases {
		b := db.pickBackup(random)
		if b == nil {
			continue
		}
		defer b.mu.Unlock()
		name := c.name("verification")
		if !c.makeNew(ctx, api, db, name, b.rows, func() (wire.Operation, error) {
			return api.RestoreBackup(ctx, db.id, b.id, wire.RestoreBackup{Mode: new(wire.RestoreNew), Name: new(name)})
		}) {
			c.t.Logf("the backup %s of %s was not restored", b.id, db)
		}
		return
	}
}

func (c *chaos) checkObjects(ctx context.Context, api *client.Client, b *chaosBucket, random *rand.Rand) {
	listed := collect(c, api.Objects(ctx, b.id, ""), func(o wire.Object) string { return o.Key })
	record, err := api.GetBucket(ctx, b.id)
	var size int64
	for _, o := range listed {
		size += o.SizeBytes
	}
	if err != nil || record.ObjectCount != int64(len(listed)) || record.SizeBytes != size {
		c.t.Errorf("%s counts %d objects of %d bytes, and %d of %d are listed: %v", b.name, record.ObjectCount, record.SizeBytes, len(listed), size, err)
	}
	for i := range b.objects {
		key, o := objectKey(i), &b.objects[i]
		found, there := listed[key]
		n := slices.IndexFunc(o.known(), func(v version) bool {
			return there == (v != noObject) && (!there || int64(v.size) == found.SizeBytes && v.checksum() == found.ChecksumCRC32C)
		})
		if n < 0 {
			c.t.Errorf("%s in %s is there: %t, of %d bytes, which nobody wanted: %v", key, b.name, there, found.SizeBytes, o.known())
			continue
		}
		o.versions = []version{o.known()[n]}
		if random.IntN(4) == 0 {
			c.compareObject(ctx, api, b, key, o)
		}
		delete(listed, key)
	}
	for key := range listed {
		c.t.Errorf("%s in %s was never put there", key, b.name)
	}
}

// checkUsage compares the counters with a recount.
func (c *chaos) checkUsage(ctx context.Context, api *client.Client) {
	c.within("a usage that is the recount", func() string {
		var want, got [4]int64
		var exports int64
		for _, d := range collect(c, api.Databases(ctx, client.DatabaseOptions{}), func(d wire.Database) string { return d.ID }) {
			want[0]++
			if x, err := api.GetExport(ctx, d.ID, ""); err == nil && x.SizeBytes != nil {
				exports += *x.SizeBytes + 2*diskBlock // its checksums, and the rest of its last block
			}
		}
		for _, b := range collect(c, api.Buckets(ctx, client.BucketOptions{}), func(b wire.Bucket) string { return b.ID }) {
			want[1]++
			want[2] += b.ObjectCount
			want[3] += b.SizeBytes
		}
		usage, err := api.GetUsage(ctx)
		m := usage.Metrics
		got = [4]int64{m.Databases.Used, m.Buckets.Used, m.Objects.Used, m.StorageBytes.Used}
		unsure := got[3] - want[3]
		if err != nil || [3]int64(got[:3]) != [3]int64(want[:3]) || unsure < 0 || unsure > c.unsureBytes {
			return fmt.Sprintf("databases, buckets, objects, bytes: %v, and counted anew %v, %v", got, want, err)
		}
		least, most := occupied(c.t, filepath.Join(c.m.dataDir, "backups"))
		if used := m.BackupBytes.Used; used < least || used > most+exports {
			return fmt.Sprintf("bytes of backups: %d, and the disk has %d to %d, and exports of %d", used, least, most, exports)
		}
		return ""
	})
}

const diskBlock = 4096

// occupied returns the disk usage of the files below dir; most includes up to
// one block per file for the file system's metadata.
func occupied(t *testing.T, dir string) (least, most int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size := info.Sys().(*syscall.Stat_t).Blocks * 512
			least, most = least+size-diskBlock, most+size
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return least, most
}

// checkAudit checks that the chains are whole, and that every acknowledged
// change is in the log.
func (c *chaos) checkAudit(ctx context.Context) {
	for _, of := range [][]string{nil, {"--appliance"}} {
		out, errs, code := c.m.run("", append([]string{"admin", "audit", "verify"}, of...)...)
		if code != 0 {
			c.t.Errorf("admin audit verify %v: %s%s", of, out, errs)
		}
		out, errs, code = c.m.run("", append([]string{"admin", "audit", "export"}, of...)...)
		if code != 0 {
			c.t.Errorf("admin audit export %v: %s", of, errs)
		}
		for line := range strings.Lines(out) {
			var entry struct {
				RequestID string `json:"request_id"`
				Outcome   string
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				c.t.Errorf("admin audit export: %v", err)
			}
			if entry.Outcome == "success" {
				delete(c.changes, entry.RequestID)
			}
		}
	}
	for id, what := range c.changes {
		c.t.Errorf("%s was acknowledged and is not in the audit log: %s", what, id)
	}
	clear(c.changes)
}
