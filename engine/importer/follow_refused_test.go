package importer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
)

// toFollow opens a session with the source that follows its publication.
func toFollow(t testing.TB, from *origin, publication string) (*Session, *Account, error) {
	t.Helper()
	account := NewAccount(model.Import{Follow: &model.ImportFollow{}}, time.Now)
	session, err := Open(t.Context(), from.source(), account)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session, account, session.Follow(t.Context(), Following{Publication: publication, Slot: "followed"})
}

func refusesToFollow(t *testing.T, from *origin, publication, says string) {
	t.Helper()
	_, _, err := toFollow(t, from, publication)
	if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), says) {
		t.Errorf("want %s: %v", says, err)
	}
}

// TestFollowRefuses: sources whose changes could not be applied later are refused before anything is copied, with a remedy.
func TestFollowRefuses(t *testing.T) {
	t.Parallel()
	from := newOrigin(t, `create table t (n int primary key); create publication everything for all tables; create type place as (name text, at point[]);
		create domain document as json`)
	conn := from.Superuser(t, "app")
	for _, test := range []struct{ prepare, says, undo string }{
		{
			"create schema cron; create table cron.runs (n int primary key); alter extension plpgsql add table cron.runs",
			`cron.runs (of the extension plpgsql); follow a publication without them: run in the source's database CREATE PUBLICATION "without_extensions" FOR TABLE "public"."t";`,
			"alter extension plpgsql drop table cron.runs; drop schema cron cascade",
		},
		{"create table x (n json); alter table x replica identity full", "public.x; give each a primary key", "drop table x"},
		{"create table x (n document); alter table x replica identity full", "public.x; give each a primary key", "drop table x"},
		{"create table x (n place); alter table x replica identity full", "public.x; give each a primary key", "drop table x"},
		{
			"create type e as enum ('a', 'b'); create domain d as e; create table x (n int, d d[], primary key (n, d)) partition by hash (d); create table y partition of x for values with (modulus 2, remainder 0)",
			`ALTER PUBLICATION "everything" SET (publish_via_partition_root = true);`, "drop table x; drop domain d; drop type e",
		},
		{"create table x (n int, d xml)", "no replica identity, so their updates and deletes fail: public.x; give each a primary key that is not DEFERRABLE", "drop table x"},
		{"create table x (n int primary key deferrable)", `ALTER TABLE "public"."x" REPLICA IDENTITY FULL;`, "drop table x"},
	} {
		run(t, conn, "set search_path = public; "+test.prepare)
		refusesToFollow(t, from, "everything", test.says)
		if strings.Contains(test.prepare, "xml") {
			_, _, err := toFollow(t, from, "everything")
			if strings.Contains(err.Error(), "FULL") {
				t.Errorf("advised: %v", err)
			}
		}
		run(t, conn, test.undo)
	}
	for _, accepted := range []string{
		"create table x (n json, id int primary key); alter table x replica identity full",
		`create table x (a text, b varchar(3), c char, d jsonb, e int[], f int4range, g tstzmultirange, h cidr, i inet, j uuid, k bytea, l name, m "char", n xid, o oid, p money, q timetz,
			r bit(3), s varbit, t tsvector, u regclass, v pg_lsn, w macaddr, x "varchar"[]); alter table x replica identity full`,
		"create type mood as enum ('sad'); create domain moods as mood[]; create type felt as (m moods, at date); create table x (m moods, f felt[]); alter table x replica identity full",
	} {
		run(t, conn, "set search_path = public; "+accepted)
		if _, _, err := toFollow(t, from, "everything"); err != nil {
			t.Errorf("%s: %v", accepted, err)
		}
		run(t, conn, "drop table x")
	}
}

// TestFollowRefusesGeneratedColumns: columns that the source generates and publishes are refused.
func TestFollowRefusesGeneratedColumns(t *testing.T) {
	t.Parallel()
	from := newOriginOf(t, postgrestest.Major(t, 18), `create table g (a int primary key, b int generated always as (a * 2) stored, c int generated always as (a * 3));
		create publication everything for all tables with (publish_generated_columns = stored)`)
	const remedy = `ALTER PUBLICATION "everything" SET (publish_generated_columns = none);`
	refusesToFollow(t, from, "everything", remedy)
	run(t, from.Superuser(t, "app"), remedy)
	if _, _, err := toFollow(t, from, "everything"); err != nil {
		t.Error(err)
	}
}

// TestFollowAdvisesNoTablesOfExtensions: where FOR ALL TABLES would publish tables of extensions, it is not advised.
func TestFollowAdvisesNoTablesOfExtensions(t *testing.T) {
	t.Parallel()
	from := newOrigin(t, `do 'begin for i in 1..21 loop execute format($$create table t%s (n int primary key)$$, i); end loop; end'; create table runs (n int primary key)`)
	refusesToFollow(t, from, "none", `CREATE PUBLICATION "none" FOR ALL TABLES;`)
	run(t, from.Superuser(t, "app"), "alter extension plpgsql add table public.runs")
	refusesToFollow(t, from, "none", `CREATE PUBLICATION "none" FOR TABLE and the names of all tables except those of extensions`)
}

// TestFollowOfShippedTables: a table with rows of an extension's own is followed if the extension is here, with a note.
func TestFollowOfShippedTables(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create table places (n int primary key); create publication everything for all tables;
		alter extension plpgsql add table places; update pg_extension set extconfig = array['places'::regclass::oid], extcondition = array['where n > 7'] where extname = 'plpgsql'`), newPlace(t)
	target, err := to.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(t.Context())
	check := func() ([]string, error) {
		session, account, err := toFollow(t, from, "everything")
		if err == nil {
			err = session.Check(t.Context(), target)
		}
		return account.Snapshot().Follow.NotFollowed, err
	}
	if notes, err := check(); err != nil || !strings.Contains(strings.Join(notes, "\n"), "public.places (of the extension plpgsql)") {
		t.Errorf("%v: %q", err, notes)
	}
	run(t, from.Superuser(t, "app"), "select pg_drop_replication_slot('followed'); update pg_extension set extname = 'unheard' where extname = 'plpgsql'")
	if _, err := check(); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "public.places (of the extension unheard)") {
		t.Errorf("without the extension here: %v", err)
	}
}

// TestFollowRefusesKeysThatAreNotHere: a table whose key could not be made here is not followed.
func TestFollowRefusesKeysThatAreNotHere(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create table fine (n int primary key); create table twice (n int primary key); create publication everything for all tables;
		update pg_index set indisready = false where indexrelid = 'twice_pkey'::regclass`), newPlace(t)
	conn := from.Superuser(t, "app")
	run(t, conn, "insert into public.twice values (1), (1); update pg_index set indisready = true where indexrelid = 'public.twice_pkey'::regclass")
	session, _, err := toFollow(t, from, "everything")
	if err != nil {
		t.Fatal(err)
	}
	to.check(t, session)
	_, err = session.CopyToFollow(t.Context(), to.job(t, func(ctx context.Context) (*pgx.Conn, error) { return to.open(ctx) }))
	if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "public.twice") || strings.Contains(err.Error(), "public.fine") {
		t.Errorf("%v", err)
	}
}
