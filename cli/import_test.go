package cli_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// importRecord holds the fields of an import that the tests read.
type importRecord struct {
	ID, Status, Phase string
	Database          string `json:"database_id"`
	Error             *string
	Rows              int64 `json:"rows_copied"`
	Bytes             int64 `json:"bytes_copied"`
	Tables            struct{ Total, Done int }
	Errors            []struct{ Object, Message string }
	Log               []struct{ At, Level, Message string }
}

func (m *machine) beginImport(name, source string) importRecord {
	m.t.Helper()
	var i importRecord
	m.must("POST", "/imports", map[string]any{"project": m.project(), "name": name, "source_url": source, "username": "newcomer"}, &i)
	if i.Status != "pending" && i.Status != "checking" {
		m.t.Errorf("a new import is %s", i.Status)
	}
	return i
}

// TestImport imports a database of the appliance itself, as a user would.
func TestImport(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	source := m.connectionURL(m.createDatabase("source").ID)
	fill(t, source)
	for _, sql := range []string{"create view big as select * from accounts where aid > 100", "comment on table accounts is 'theirs'", "create extension hstore"} {
		query(t, source, sql)
	}
	i := m.beginImport("copy", source)
	testenv.Eventually(t, "the end of the import", func() bool {
		m.must("GET", "/imports/"+i.ID, nil, &i)
		return strings.HasPrefix(i.Status, "completed") || i.Status == "failed"
	})
	if i.Status != "completed" || i.Rows != 300000 || i.Bytes == 0 || i.Tables.Done != 1 || i.Tables.Total != 1 || len(i.Log) < 3 {
		t.Errorf("the import: %+v", i)
	}
	copied := m.connectionURL(i.Database)
	if got, want := query(t, copied, checksum), query(t, source, checksum); got != want {
		t.Errorf("copied %s, not %s", got, want)
	}
	if got := query(t, copied, "select current_user || ' ' || obj_description('accounts'::regclass) || ' ' || (select relname from pg_class where relname = 'accounts_pkey')"); got != "newcomer theirs accounts_pkey" {
		t.Errorf("copied %s", got)
	}
	var list []map[string]any
	m.must("GET", "/imports", nil, &list)
	if _, logged := list[0]["log"]; len(list) != 1 || logged {
		t.Errorf("the list has %d imports, with their log: %v", len(list), logged)
	}
	status, e := m.do("POST", "/imports", map[string]any{"project": m.project(), "name": "copy", "source_url": source})
	if status != 409 {
		t.Errorf("a second import of the name: %d %+v", status, e.Error)
	}
	secret := strings.Split(strings.Split(source, ":")[2], "@")[0]
	if strings.Contains(m.log.String(), secret) {
		t.Error("the appliance's log has the password")
	}
}

func TestKillDuringImport(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	source := m.connectionURL(m.createDatabase("source").ID)
	query(t, source, `create function wait() returns bool language plpgsql as
		$$ begin if current_user = 'newcomer' then perform pg_sleep(1); end if; return true; end $$`)
	query(t, source, "create table slow (n int, pad text, check (wait()))")
	query(t, source, "insert into slow select n, repeat('x', 1000) from generate_series(1, 20000) n")
	i := m.beginImport("copy", source)
	testenv.Catch(t, time.Minute, "rows that are copied", func() bool {
		m.must("GET", "/imports/"+i.ID, nil, &i)
		return i.Status == "copying" && i.Rows > 0
	})
	var db database
	m.must("GET", "/databases/"+i.Database, nil, &db)
	if db.Status != "importing" || db.Operation == nil || db.Operation.Type != "import" {
		t.Errorf("during the import: %+v", db)
	}
	m.kill()
	m.start()
	m.must("GET", "/imports/"+i.ID, nil, &i)
	if i.Status != "failed" || i.Error == nil || !strings.Contains(*i.Error, "start the import again") {
		t.Errorf("after the appliance was killed: %+v", i)
	}
	if status, _ := m.do("GET", "/databases/"+i.Database, nil); status != 404 {
		t.Errorf("the half database answers %d", status)
	}
	m.createDatabase("copy") // the name is free
	if got := query(t, source, "select count(*) from slow"); got != "20000" {
		t.Errorf("the source has %s rows", got)
	}
}
