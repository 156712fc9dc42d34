package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

func exporting(t testing.TB) core.Config {
	cfg := testConfig(t, newDataDir(t))
	cfg.Exports = true
	return cfg
}

// awaitExport waits for a ready export other than before.
func (a *appliance) awaitExport(t testing.TB, database, before string) recovery.ExportView {
	t.Helper()
	var view recovery.ExportView
	testenv.Within(t, time.Minute, "an export", func() bool {
		var err error
		view, err = a.Recovery.ExportGet(a.call(model.ActionExportGet), database, "")
		a.Recovery.Exports.Wake() // instead of waiting for the interval
		return err == nil && view.Status == model.ExportReady && view.ID != before
	})
	return view
}

// download reads an export through its signed path.
func (a *appliance) download(t testing.TB, view recovery.ExportView) ([]byte, error) {
	t.Helper()
	signed, err := url.Parse(view.DownloadPath)
	if err != nil {
		t.Fatal(err)
	}
	x, err := a.Recovery.ExportDownload(t.Context(), &model.Call{}, strings.TrimPrefix(signed.Path, recovery.ExportPath), view.DownloadPath)
	if err != nil {
		return nil, err
	}
	defer x.Content.Close()
	return io.ReadAll(x.Content)
}

// An export follows each backup, and plain PostgreSQL can restore it.
func TestExport(t *testing.T) {
	t.Parallel()
	cfg := exporting(t)
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	if _, err := a.Recovery.ExportGet(a.call(model.ActionExportGet), db.ID, ""); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("before the first: %v", err)
	}
	run(t, c, "create table orders (id bigint generated always as identity primary key, cents int check (cents > 0))")
	run(t, c, "insert into orders (cents) select n from generate_series(1, 1000) n")
	run(t, c, "alter table orders enable row level security")
	run(t, c, "alter table orders force row level security")
	a.backUp(t, db.ID)
	first := a.awaitExport(t, db.ID, "")
	dump, err := a.download(t, first)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(dump); hex.EncodeToString(sum[:]) != first.ChecksumSHA256 || int64(len(dump)) != first.SizeBytes {
		t.Errorf("%d bytes, of which the record says %+v", len(dump), first.Export)
	}
	restoreElsewhere(t, dump)

	run(t, c, "truncate orders")
	a.backUp(t, db.ID)
	second := a.awaitExport(t, db.ID, first.ID)
	if _, err := a.download(t, first); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the replaced export: %v", err)
	}
	testenv.Within(t, 30*time.Second, "the end of the replaced export's bytes", func() bool { // they are removed after the record
		r, err := a.Core.Blobs.Open(t.Context(), blobstore.Ref(first.Blob))
		if err == nil {
			r.Close()
		}
		return err != nil
	})
	second.DownloadPath = strings.Replace(second.DownloadPath, "signature=", "signature=A", 1)
	if _, err := a.download(t, second); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("with another signature: %v", err)
	}
	by.Store(int64(core.DownloadLife + time.Minute))
	if _, err := a.download(t, first); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("after its time: %v", err)
	}
}

// restoreElsewhere restores a dump on a server whose roles have other names, as the documentation describes. The dump
// names roles: without --no-acl it cannot be restored there.
func restoreElsewhere(t *testing.T, dump []byte) {
	t.Helper()
	other := postgrestest.Instance(t)
	other.Tenant.Database, other.Tenant.Owner, other.Tenant.ReadOnly = "elsewhere", "someone", "someones_reader"
	if err := postgres.Provision(t.Context(), other.Superuser(t, "postgres"), other.Tenant); err != nil {
		t.Fatal(err)
	}
	hba := postgres.HBA{Database: "elsewhere", Users: []string{"someone"}, Allow: other.Spec.HBA.Allow}
	if err := other.Supervisor.Update(t.Context(), other.Spec.ID, hba); err != nil {
		t.Fatal(err)
	}
	if err := restoreInto(t, other, dump); err == nil || !strings.Contains(err.Error(), "app_readonly") {
		t.Errorf("with the source's privileges: %v", err)
	}
	if err := restoreInto(t, other, dump, "--no-acl"); err != nil {
		t.Fatal(err)
	}
	var count, sum int
	err := other.Superuser(t, other.Tenant.Database).QueryRow(t.Context(), "select count(*), sum(cents) from public.orders where has_table_privilege('someones_reader', 'public.orders', 'select')").Scan(&count, &sum)
	if err != nil || count != 1000 || sum != 500500 {
		t.Errorf("restored elsewhere: %d rows, sum %d, %v", count, sum, err)
	}
}

// restoreInto restores a dump into the tenant's database of an instance, as its owner.
func restoreInto(t *testing.T, to *postgrestest.Database, dump []byte, options ...string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.dump")
	if err := os.WriteFile(file, dump, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), to.Spec.Bin.Tool("pg_restore"), append(options, "--no-owner", "--exit-on-error", "--single-transaction",
		"--dbname", to.URL(to.Tenant.Owner, to.Tenant.OwnerPassword), file)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_restore: %w: %s", err, out)
	}
	return nil
}

// holdTable locks a new table in a transaction of the session that it returns.
func holdTable(t testing.TB, c databases.Connection) *pgx.Conn {
	t.Helper()
	holder := connect(t, c)
	for _, sql := range []string{"create table held (n int)", "begin", "lock table held in access exclusive mode"} {
		if _, err := holder.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return holder
}

// elsewhere returns the appliance as seen by another organization.
func (a *appliance) elsewhere(t testing.TB, name string) *appliance {
	t.Helper()
	org, err := a.Access.OrganizationCreate(a.call(model.ActionOrganizationCreate), name)
	if err != nil {
		t.Fatal(err)
	}
	other := &appliance{Engine: a.Engine, cfg: a.cfg, org: org.ID}
	if other.project, err = a.Databases.OldestProject(other.call(model.ActionProjectList)); err != nil {
		t.Fatal(err)
	}
	return other
}

// A locked database delays only the exports of its own organization.
func TestExportsOfOthersAreNotHeldUp(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	locked, c := a.createDatabase(t, "locked")
	holder := holdTable(t, c)
	b := a.elsewhere(t, "globex")
	free, _ := b.createDatabase(t, "free")
	for _, db := range []databases.View{locked, free} { // the oldest export comes first
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
			return a.Recovery.RequestExport(tx, model.Backup{Organization: db.Organization, Database: db.ID})
		}); err != nil {
			t.Fatal(err)
		}
	}
	a.Recovery.Exports.Wake()
	b.awaitExport(t, free.ID, "")
	if view, err := a.Recovery.ExportGet(a.call(model.ActionExportGet), locked.ID, ""); err != nil || view.Status != model.ExportRunning {
		t.Errorf("of the locked one: %+v, %v", view, err)
	}
	if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	a.awaitExport(t, locked.ID, "")
}

// TestExportDuringAChange: no export begins while the server may not have the name of the record yet, and no rename while an
// export reads the database.
func TestExportDuringAChange(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, _ := a.createDatabase(t, "shop")
	pending := func(change *model.PendingChange) {
		t.Helper()
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
			return tx.Databases().Change(db.ID, func(d *model.Database) { d.PendingChange = change })
		}); err != nil {
			t.Fatal(err)
		}
	}
	release, err := a.Core.Claims.Take(db.ID, "a change of its properties") // the sweep leaves it alone
	if err != nil {
		t.Fatal(err)
	}
	pending(&model.PendingChange{})
	x := a.mustExport(t, db.ID, "")
	for range 3 {
		a.Recovery.MakeNextExport(t.Context())
	}
	if now := a.awaitExportOf(t, db.ID, "", x.ID, model.ExportPending, model.ExportRunning, model.ExportFailed, model.ExportReady); now.Status != model.ExportPending {
		t.Errorf("during a change the export is %s: %s", now.Status, now.Error)
	}
	pending(nil)
	release()
	op := a.beginByHand(t, a.record(t, db.ID), model.OperationExport, model.DatabaseAvailable, 0)
	if err := a.update(t, db.ID, databases.Change{Name: new("renamed")}); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "an export reads") {
		t.Errorf("a rename during an export: %v", err)
	}
	if err := a.Databases.EndOperation(op); err != nil {
		t.Fatal(err)
	}
	a.Recovery.Exports.Wake()
	a.awaitExportOf(t, db.ID, "", x.ID, model.ExportReady)
}

// An export that was running when the appliance died is made after the next start.
func TestExportAfterACrash(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, _ := a.createDatabase(t, "shop")
	a.backUp(t, db.ID)
	first := a.awaitExport(t, db.ID, "")
	x := model.Export{
		ID: a.Core.NewID(model.ResourceExport), Organization: a.org, Database: db.ID, Status: model.ExportRunning, CreatedAt: a.Core.Clock(), Requested: true,
	}
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Exports().Insert(x) }); err != nil {
		t.Fatal(err)
	}
	view, err := a.Recovery.ExportGet(a.call(model.ActionExportGet), db.ID, "")
	if err != nil || view.ID != first.ID || view.Newer == nil || view.Newer.ID != x.ID || view.Newer.Status != model.ExportRunning {
		t.Errorf("while it is made: %+v, %v", view, err)
	}
	a.abandon(t)
	b := a.reopen(t)
	if second := b.awaitExport(t, db.ID, first.ID); second.ID != x.ID || second.Newer != nil {
		t.Errorf("another export was made: %+v", second)
	}
}

// A failing export is retried after increasing waits, and then marked as failed with the reason.
func TestExportThatFails(t *testing.T) {
	t.Parallel()
	cfg := exporting(t)
	by := ahead(&cfg)
	cfg.Search.Installed = func() []string { return nil }
	cfg.Search.Explicit = linkPrograms(t)
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	if err := os.Remove(filepath.Join(cfg.Search.Explicit, "pg_dump")); err != nil {
		t.Fatal(err)
	}
	a.backUp(t, db.ID)
	for attempt := 1; attempt <= recovery.ExportAttempts; attempt++ {
		testenv.Within(t, time.Minute, "an attempt", func() bool {
			view, err := a.Recovery.ExportGet(a.call(model.ActionExportGet), db.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			if view.Attempts < attempt {
				a.Recovery.Exports.Wake()
				return false
			}
			if want := map[bool]model.ExportStatus{true: model.ExportFailed, false: model.ExportPending}[attempt == recovery.ExportAttempts]; view.Status != want {
				t.Errorf("attempt %d: %s, not %s", attempt, view.Status, want)
			}
			if !strings.Contains(view.Error, "pg_dump") || !strings.Contains(view.Error, "install") {
				t.Errorf("the reason names no remedy: %s", view.Error)
			}
			return true
		})
		by.Add(int64(recovery.ExportRetry << attempt))
	}
}

// linkPrograms returns a directory of links to PostgreSQL's programs.
func linkPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	programs, err := filepath.Glob(filepath.Join(postgrestest.Binaries(t).Dir, "*"))
	for _, program := range programs {
		err = errors.Join(err, os.Symlink(program, filepath.Join(dir, filepath.Base(program))))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// An export that was requested while the clock was a year ahead is made once it is right.
func TestExportRequestedByAClockAhead(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, _ := a.createDatabase(t, "shop")
	at := a.Core.Clock().AddDate(1, 0, 0)
	x := model.Export{
		ID: a.Core.NewID(model.ResourceExport), Organization: a.org, Database: db.ID, Status: model.ExportPending, CreatedAt: at, NotBefore: at, Requested: true,
	}
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Exports().Insert(x) }); err != nil {
		t.Fatal(err)
	}
	a.awaitExportOf(t, db.ID, "", x.ID, model.ExportReady)
}
