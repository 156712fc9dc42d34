package importer

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/postgres/postgrestest"
)

// realArchive has pg_dump describe a few objects.
func realArchive(t testing.TB) []byte {
	t.Helper()
	d := postgrestest.Instance(t)
	run(t, d.Owner(t), `create table public.t (n int primary key); comment on table public.t is 'x'; create view public.v as select * from public.t`)
	out, err := exec.CommandContext(t.Context(), filepath.Join(d.Spec.Bin.Dir, "pg_dump"), "-Fc", "-s", "-Z0",
		d.URL("app", d.Tenant.OwnerPassword)).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return out
}

func TestReadArchive(t *testing.T) {
	t.Parallel()
	archive := realArchive(t)
	entries, err := readArchive(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]entry{}
	for _, e := range entries {
		found[e.name()] = e
	}
	table, key := found["TABLE public.t"], found["CONSTRAINT public.t t_pkey"]
	if !strings.HasPrefix(table.definition, "CREATE TABLE public.t") || table.owner != "app" || table.section != sectionPreData || table.oid == 0 {
		t.Errorf("the table: %+v", table)
	}
	if key.section != sectionPostData || len(key.needs) == 0 || key.needs[0] != table.id {
		t.Errorf("its key: %+v", key)
	}
	if c := found["COMMENT public.TABLE t"]; c.section != sectionNone || !strings.Contains(c.definition, "'x'") {
		t.Errorf("its comment: %+v", c)
	}
	// A truncated archive is refused, wherever it ends.
	for length := 0; length < len(archive); length += 7 {
		if _, err := readArchive(bytes.NewReader(archive[:length])); err == nil {
			t.Fatalf("an archive that ends at byte %d of %d is read", length, len(archive))
		}
	}
	other := bytes.Clone(archive)
	other[6] = 99 // the minor version
	if _, err := readArchive(bytes.NewReader(other)); !errors.Is(err, errArchive) {
		t.Errorf("a version that is not known: %v", err)
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add([]byte("PGDMP\x01\x0e\x00\x04\x08\x01"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = readArchive(bytes.NewReader(data))
	})
}
