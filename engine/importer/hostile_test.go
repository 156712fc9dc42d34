package importer

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/engine/model"
)

//go:embed testdata/hostile.sql
var hostile string

// sound are queries that return no row in an instance whose owner has only an owner's privileges.
var sound = map[string]string{
	"role": `select rolname, rolsuper, rolcreaterole, rolreplication, rolbypassrls from pg_roles where rolname !~ '^pg_'
		and (rolname not in ('holdfast', 'holdfast_dump', 'app', 'app_readonly') or rolname in ('app', 'app_readonly') and (rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls))`,
	"password of the superuser": "select rolname from pg_authid where rolname = 'holdfast' and rolpassword is not null",
	"membership":                "select roleid::regrole, member::regrole from pg_auth_members where member = 'app'::regrole or roleid = 'holdfast'::regrole",
	"superuser's object": `select c.oid::regclass from pg_class c where relowner = 10 and c.oid >= 16384 and relkind in ('r', 'v', 'm', 'S')
		and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')`,
	"superuser's function": `select p.oid::regprocedure from pg_proc p where proowner = 10 and p.oid >= 16384
		and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype in ('e', 'i'))`,
	"event trigger":            "select evtname from pg_event_trigger",
	"ALTER SYSTEM":             "select name from pg_file_settings where sourcefile like '%auto.conf'",
	"database":                 "select datname from pg_database where datname not in ('app', 'postgres', 'template0', 'template1')",
	"spoils":                   "select text from public.spoils",
	"code that ran as another": "select distinct lomowner::regrole from pg_largeobject_metadata where lomowner <> 'app'::regrole",
}

// TestHostileSource imports from a source that attacks with everything a database can run implicitly, and with a server
// that lies.
func TestHostileSource(t *testing.T) {
	t.Parallel()
	const attack = "/tmp/holdfast-attack"
	from, to := newOrigin(t, hostile), newPlace(t)
	record, err := to.bring(t, from.source())
	if err != nil {
		t.Fatalf("%v\n%+v", err, record.Log)
	}
	if _, err := os.Lstat(attack); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program was run, or a file written: %v", err)
	}
	conn := to.Superuser(t, "app")
	for name, query := range sound {
		if rows := ask(t, conn, query); rows != "" {
			t.Errorf("%s: %s", name, rows)
		}
	}
	if n := ask(t, conn, "select count(*) > 3 from pg_largeobject_metadata"); n != "t\n" {
		t.Error("the source's code did not run at all: there is nothing to see")
	}
	// The import reports what was refused, by name, and what was created that the source does not have.
	told := ""
	for _, flaw := range record.Errors {
		told += flaw.Object + " " + flaw.SQLState + " " + flaw.Message + "\n"
	}
	for _, want := range []string{"VIEW public.lie_super 42501", "VIEW public.lie_copy 57014", "VIEW public.lie_begin", "LARGE OBJECTS", "TABLE DATA public.victim  the source has 1 rows in the snapshot, the copy 2"} {
		if !strings.Contains(told, want) {
			t.Errorf("%s is not told:\n%s", want, told)
		}
	}
}

// TestLongAnswer: of a message that claims to be long, only the head is read.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	const claimed = 1 << 30
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	written := make(chan int)
	go func() {
		sum := 0
		defer func() { written <- sum }()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		part := bytes.Repeat([]byte("a "), 1<<15)
		message := append(binary.BigEndian.AppendUint32([]byte{'E'}, claimed), "SFATAL\x00C28000\x00M"...)
		for n := 0; err == nil && sum < claimed; sum += n {
			n, err = conn.Write(message)
			message = part
		}
	}()
	source := Source{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Database: "app", User: "boss", sslMode: "disable"}
	if _, err := Open(t.Context(), source, NewAccount(model.Import{}, time.Now)); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("%v", err)
	}
	if n := <-written; n > claimed/10 {
		t.Errorf("%d bytes of the message were read", n)
	}
}

// TestOneLine does not run in parallel: it counts the allocations of the whole process.
func TestOneLine(t *testing.T) {
	long := strings.Repeat("ä ", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := oneLine(long)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; !utf8.ValidString(got) || utf8.RuneCountInString(got) != 501 || taken > 1<<20 {
		t.Errorf("%d bytes for %q", taken, got)
	}
	if got := oneLine(" one\n\xff two\t"); got != "one ? two" {
		t.Errorf("%q", got)
	}
}
