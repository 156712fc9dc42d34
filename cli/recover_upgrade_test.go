package cli_test

import (
	"os"
	"testing"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestRecoverUpgraded: the copy has the backup that an upgrade makes first, also of an upgrade that then fails, and nothing leads
// from that to the data after the upgrade. The recovery point waits for the backup that does.
func TestRecoverUpgraded(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	if postgrestest.Binaries(t).Major >= 16 {
		t.Skip("the tests run on a version for which the view is no obstacle")
	}
	m := newMachine(t)
	c := m.prepareCopy(t)
	env := append(m.env, "PATH="+postgrestest.Major(t, 18).Dir+":"+os.Getenv("PATH"))
	m.env = env
	flags := append(c.serveFlags(), "--backup-interval", "0", "--no-exports")
	m.start(flags...)
	var shop database
	m.must("POST", "/databases", map[string]any{"project": m.project(), "name": "shop", "version": "15"}, &shop)
	url := m.connectionURL(shop.ID)
	query(t, url, "create table t as select 1 n")
	query(t, url, "create view old as select buffers_backend from pg_stat_bgwriter")
	upgrade := func(want wire.OperationStatus) {
		t.Helper()
		var op wire.Operation
		m.must("POST", "/databases/"+shop.ID+"/upgrade", map[string]any{"version": "18"}, &op)
		testenv.Within(t, applianceTime, "the end of the upgrade", func() bool {
			m.must("GET", "/operations/"+op.ID, nil, &op)
			return op.Status == wire.OperationCompleted || op.Status == wire.OperationFailed
		})
		if op.Status != want {
			t.Fatalf("the upgrade is %s: %s", op.Status, deref(op.Error))
		}
	}
	lose := func(version, rows string) {
		t.Helper()
		m.awaitCopied()
		m.killAll()
		m = m.elsewhere()
		m.env = env
		m.recoverFrom(c, "--backup-interval", "0", "--no-exports")
		m.awaitAvailable(shop.ID)
		url = m.connectionURL(shop.ID)
		if got := query(t, url, "select current_setting('server_version_num')::int / 10000 || ': ' || count(*) from t"); got != version+": "+rows {
			t.Errorf("version and rows are %s, not %s: %s", got, version, rows)
		}
	}
	upgrade(wire.OperationFailed)
	lose("15", "1")
	query(t, url, "drop view old")
	query(t, url, "insert into t values (2)")
	upgrade(wire.OperationCompleted)
	query(t, url, "insert into t values (3)")
	lose("18", "3")
}
