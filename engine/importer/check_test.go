package importer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// TestCheckRefuses: problems that would prevent the copy of data are refused before any is copied, and the error gives
// the remedy.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create table t (n int); create table secret (n int); create sequence s;
		insert into secret values (1)`), newPlace(t)
	conn := from.Superuser(t, "app")
	run(t, conn, "create role auditor login password 'auditors'; grant connect on database app to auditor")
	auditor := from.source()
	auditor.User, auditor.Password = "auditor", model.NewSecret("auditors")
	run(t, conn, "set search_path = public; grant select on t, s to auditor")
	for _, test := range []struct{ prepare, says string }{
		{"select 1", "public.secret"},
		{"grant select on public.secret to auditor; alter table public.secret enable row level security", "row security hides rows of public.secret"},
		{"alter table public.secret disable row level security; revoke all on public.s from auditor", "public.s"},
		{"grant select on public.s to auditor; select lo_create(4711), lo_create(4712); grant select on large object 4712 to public", "may not read 1 large object"},
	} {
		run(t, conn, test.prepare)
		record, err := to.bring(t, auditor)
		if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), test.says) || record.RowsCopied > 0 {
			t.Errorf("%s: %v", test.prepare, err)
		}
	}
	for _, test := range []struct{ prepare, says, undo string }{
		{"create extension dblink schema public; create table public.needs (d public.dblink_pkey_results)", "dblink (for the table public.needs)", "drop extension dblink cascade"},
		{
			`create collation public.mine from "C"; update pg_collation set collname = 'xx_XX.utf8', collnamespace = 'pg_catalog'::regnamespace where collname = 'mine';
			create table public.sorted (t text collate pg_catalog."xx_XX.utf8")`,
			"xx_XX.utf8", "drop table public.sorted",
		},
	} {
		run(t, conn, test.prepare)
		record, err := to.bring(t, from.source())
		if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), test.says) || record.RowsCopied > 0 {
			t.Errorf("%s: %v", test.prepare, err)
		}
		run(t, conn, test.undo)
	}
}

// remake recreates the source's database with the given options of CREATE DATABASE.
func (o *origin) remake(t testing.TB, with string) {
	t.Helper()
	conn := o.Superuser(t, "postgres")
	run(t, conn, "drop database app with (force)")
	run(t, conn, "create database app template template0 "+with)
}

// check checks a source that is to be copied to the place.
func (p *place) check(t testing.TB, session *Session) {
	t.Helper()
	target, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close(t.Context())
	if err := session.Check(t.Context(), target); err != nil {
		t.Fatal(err)
	}
}

// warnings returns the warnings of the check of a source.
func (p *place) warnings(t testing.TB, from Source) string {
	t.Helper()
	account := NewAccount(model.Import{}, time.Now)
	session, err := Open(t.Context(), from, account)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	p.check(t, session)
	var said strings.Builder
	for _, line := range account.Snapshot().Log {
		if line.Level == model.ImportWarning {
			fmt.Fprintln(&said, line.Message)
		}
	}
	return said.String()
}

// TestCheckOfLocales: the check warns if text sorts or changes case differently, whatever provides the locale, but not
// if only the locale's name differs.
func TestCheckOfLocales(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, "select 1"), newPlace(t)
	for _, test := range []struct{ with, order, letters string }{
		{"locale 'C.UTF-8'", "", ""},
		{"lc_collate 'C' lc_ctype 'C.UTF-8'", "", ""},
		{"lc_collate 'POSIX' lc_ctype 'C'", "", "ASCII"},
		{"locale 'C.UTF-8' locale_provider icu icu_locale 'de-AT'", "ICU's de-AT", "ICU's de-AT"},
	} {
		from.remake(t, test.with)
		said := to.warnings(t, from.source())
		for sentence, by := range map[string]string{"text is sorted by ": test.order, "letters are told by ": test.letters} {
			if by == "" && strings.Contains(said, sentence) || by != "" && !strings.Contains(said, sentence+by+" in the source") {
				t.Errorf("%s: %s", test.with, said)
			}
		}
	}
}

// TestCheckOfEncoding: for a source without a known encoding the check warns before anything is copied, and gives a
// remedy that works.
func TestCheckOfEncoding(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, "select 1"), newPlace(t)
	from.remake(t, "encoding 'SQL_ASCII' locale 'C'")
	conn := from.Superuser(t, "app")
	run(t, conn, `set client_encoding = 'SQL_ASCII'; set search_path = public; create table fine as select 'é'::text as c;
		create table t (c text); insert into t values (E'caf\351 \\ ')`)
	said := to.warnings(t, from.source())
	_, remedy, found := strings.Cut(said, "by: ")
	remedy, _, _ = strings.Cut(remedy, "\n")
	if !found || !strings.Contains(said, "SQL_ASCII") {
		t.Fatalf("warned of: %s", said)
	}
	record, err := to.bring(t, from.source())
	if err != nil || len(record.Errors) != 1 || !strings.Contains(record.Errors[0].Object, "public.t") {
		t.Errorf("before: %+v, %v", record.Errors, err)
	}
	run(t, conn, "set search_path = public; "+remedy)
	next := newPlace(t)
	if record, err := next.bring(t, from.source()); err != nil || len(record.Errors) > 0 {
		t.Errorf("afterwards: %+v, %v", record.Errors, err)
	}
	if got := ask(t, next.Superuser(t, "app"), "select c from public.t"); got != "café \\ \n" {
		t.Errorf("it is %q", got)
	}
}

func TestLocales(t *testing.T) {
	t.Parallel()
	for l, want := range map[locale][2]string{
		{"c", "en_US.UTF-8", "en_US.UTF-8", ""}: {"en_US.UTF-8", "Unicode"},
		{"c", "C", "tr_TR.UTF-8", ""}:           {"code points", "tr_TR.UTF-8"},
		{"b", "C", "C", "C"}:                    {"code points", "ASCII"},
		{"b", "C", "C", "C.UTF-8"}:              {"code points", "Unicode"},
		{"b", "C", "C", "PG_UNICODE_FAST"}:      {"code points", "PG_UNICODE_FAST"},
		{"i", "C", "C", "und"}:                  {"ICU's und", "ICU's und"},
	} {
		if got := [2]string{l.order(), l.letters()}; got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}

// TestCopyOfMembers: rows in an extension's table are not copied, and the import says so, except for the extension's
// own rows.
func TestCopyOfMembers(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create extension citext; create table jobs (n int); create table fixed (n int); insert into fixed values (1);
		alter extension citext add table jobs; alter extension citext add table fixed;
		update pg_extension set extconfig = array['jobs'::regclass::oid, 'fixed'::regclass::oid], extcondition = array['', 'where n > 1'] where extname = 'citext'`), newPlace(t)
	if record, err := to.bring(t, from.source()); err != nil || len(record.Errors) > 0 {
		t.Errorf("without rows: %+v, %v", record.Errors, err)
	}
	run(t, from.Superuser(t, "app"), "insert into public.jobs values (1)")
	record, err := newPlace(t).bring(t, from.source())
	if err != nil || len(record.Errors) != 1 || !strings.Contains(record.Errors[0].Object, "jobs") {
		t.Errorf("with a row: %+v, %v", record.Errors, err)
	}
}

// TestCopyWithFewConnections: a source that allows two sessions is copied by one reader, whatever its limits on
// transaction time.
func TestCopyWithFewConnections(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, `create role auditor login password 'auditors' connection limit 2; grant connect on database app to auditor;
		create table a as select generate_series(1, 100) n; create table b as select * from a; create table c as select * from a;
		grant select on a, b, c to auditor; alter role auditor set idle_in_transaction_session_timeout = '100ms';
		do $$ begin if current_setting('server_version_num')::int >= 170000 then alter role auditor set transaction_timeout = '100ms'; end if; end $$`), newPlace(t)
	source := from.source()
	source.User, source.Password = "auditor", model.NewSecret("auditors")
	record, err := to.bring(t, source)
	if err != nil || len(record.Errors) > 0 || record.RowsCopied != 300 {
		t.Errorf("%d rows, %+v, %v", record.RowsCopied, record.Errors, err)
	}
}

// TestCopyEndsWithSnapshot: when the session that holds the snapshot and the tables ends, the copy fails.
func TestCopyEndsWithSnapshot(t *testing.T) {
	t.Parallel()
	from, to := newOrigin(t, "create table a as select generate_series(1, 100) n"), newPlace(t)
	killer := from.Superuser(t, "app")
	account := NewAccount(model.Import{}, time.Now)
	var kill sync.Once
	err := to.copyWith(t, from.source(), account, func(ctx context.Context, holder uint32) (*pgx.Conn, error) {
		if account.Snapshot().Phase == "data and indexes" {
			kill.Do(func() { run(t, killer, fmt.Sprintf("select pg_terminate_backend(%d, 60000)", holder)) })
		}
		return to.open(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "holds the snapshot") || account.Snapshot().Phase != "data and indexes" {
		t.Errorf("%s: %v", account.Snapshot().Phase, err)
	}
}

// TestOpenExplains: the error of a failed connection explains the cause within seconds, without the password or the
// text of an untrusted answer.
func TestOpenExplains(t *testing.T) {
	t.Parallel()
	from := newOrigin(t, "select 1")
	talker := talk(t, "HTTP/1.1 400 a secret of this machine\r\n\r\n")
	silent := talk(t, "")
	for name, test := range map[string]struct {
		change func(*Source)
		says   string
	}{
		"wrong password":       {func(s *Source) { s.Password = model.NewSecret("wrong-hidden") }, "password"},
		"unknown user":         {func(s *Source) { s.User = "nobody" }, "nobody"},
		"unknown database":     {func(s *Source) { s.Database = "other" }, "pg_hba.conf"},
		"the appliance's own":  {func(s *Source) { s.User, s.Database = "holdfast", "postgres" }, "pg_hba.conf"},
		"nothing listens":      {func(s *Source) { s.Port = 1 }, "nothing listens at 127.0.0.1:1"},
		"unknown host":         {func(s *Source) { s.Host = "no-such-host.invalid" }, "no-such-host.invalid"},
		"no trusted TLS":       {func(s *Source) { s.sslMode = "verify-full" }, "TLS"},
		"a link-local address": {func(s *Source) { s.Host = "169.254.169.254" }, "refused"},
		"no PostgreSQL":        {func(s *Source) { s.Port, s.sslMode = talker, "disable" }, "check that it is a PostgreSQL server"},
		"ends at once":         {func(s *Source) { s.Port, s.sslMode = silent, "prefer" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := from.source()
			test.change(&source)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := Open(ctx, source, NewAccount(model.Import{}, time.Now))
			if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v", err)
			}
			if err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "secret of this machine")) {
				t.Errorf("it is said what should not be: %v", err)
			}
		})
	}
}

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for text, old := range map[string]bool{
		"9.5.25": true, "8.4": true, "9.6.24": false, "10.1": false, "15.18 (Debian)": false, "18.3": false, "18beta1": false, "": false,
	} {
		if err := checkVersion(text); (err != nil) != old {
			t.Errorf("%s: %v", text, err)
		}
	}
}
