package backup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/backup/repository"
	"holdfast/internal/pgcontrol"
)

// dataDirectory is a synthetic data directory, without a server.
type dataDirectory struct {
	t   *testing.T
	dir string
}

func newDataDirectory(t *testing.T) *dataDirectory {
	t.Helper()
	d := &dataDirectory{t, t.TempDir()}
	control := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(control, 42)
	binary.LittleEndian.PutUint32(control[288:], crc32.Checksum(control[:288], castagnoli))
	d.write(controlFile, control)
	return d
}

func (d *dataDirectory) write(name string, content []byte) {
	d.t.Helper()
	path := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// page returns a page with a correct checksum as the given block of its relation, last changed at LSN 1.
func page(block uint32, text string) []byte {
	p := make([]byte, pageSize)
	p[4], p[14], p[15] = 1, 0, 0x20
	copy(p[100:], text)
	binary.LittleEndian.PutUint16(p[8:], pageChecksum(p, block))
	return p
}

// copyAll copies the directory as a backup would, from a server whose backup began at LSN 100 and ended at 200.
func (d *dataDirectory) copyAll(repo *repository.Repository, id string, changes map[string][]uint32) ([]repository.Entry, error) {
	d.t.Helper()
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer root.Close()
	entries, err := listFiles(d.t.Context(), root)
	if err != nil {
		return nil, err
	}
	w, err := repo.Begin()
	if err != nil {
		d.t.Fatal(err)
	}
	defer w.Abort()
	before, err := openBase(repo, "before")
	if err != nil {
		d.t.Fatal(err)
	}
	defer before.close()
	if changes != nil {
		before.changes = scannedPages(changes)
	}
	c := newCopying(&taking{
		server: &server{checksums: true, start: 100}, repo: repo, writer: w, root: root, base: before, progress: &progress{},
	}, entries)
	if err := c.run(d.t.Context()); err != nil {
		return nil, err
	}
	if err := c.checkTorn(200); err != nil {
		return nil, err
	}
	m := &repository.Manifest{Backup: repository.Backup{ID: id}, Entries: c.done()}
	if _, _, err := w.Commit(m); err != nil {
		d.t.Fatal(err)
	}
	return m.Entries, nil
}

// mustBeLike restores a backup and compares it with the directory.
func (d *dataDirectory) mustBeLike(repo *repository.Repository, id string) {
	d.t.Helper()
	dir := filepath.Join(d.t.TempDir(), "r")
	if err := restoreTo(d.t.Context(), repo, id, dir); err != nil {
		d.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer root.Close()
	entries, err := listFiles(d.t.Context(), root)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		want, err1 := os.ReadFile(filepath.Join(d.dir, e.Path))
		got, err2 := os.ReadFile(filepath.Join(dir, e.Path))
		if !e.IsDir() && (err1 != nil || err2 != nil || !bytes.Equal(got, want)) {
			d.t.Errorf("%s is restored as something else (%v, %v)", e.Path, err1, err2)
		}
	}
}

// TestSegments copies a relation of more than 1 GB: block numbers continue in its second file.
func TestSegments(t *testing.T) {
	repo, _ := openRepository(t)
	d := newDataDirectory(t)
	d.write("base/5/16384", page(0, "first"))
	if err := os.Truncate(filepath.Join(d.dir, "base/5/16384"), 1<<30); err != nil { // the rest is new pages
		t.Fatal(err)
	}
	d.write("base/5/16384.1", slices.Concat(page(pagesPerSegment, "a"), page(pagesPerSegment+1, "b")))
	d.write("base/5/16384_vm", page(0, "map"))
	entries, err := d.copyAll(repo, "before", nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(entries, func(e repository.Entry) bool { return e.Path == "base/5/16384" })
	if i < 0 || entries[i].Size != 1<<30 || len(entries[i].Chunks) != 2 {
		t.Errorf("the first segment: %+v", entries[i])
	}
	d.write("base/5/16384.1", slices.Concat(page(pagesPerSegment, "a"), page(1, "b")))
	if _, err := d.copyAll(repo, "wrong", nil); err == nil || !strings.Contains(err.Error(), "base/5/16384.1 block 1") {
		t.Errorf("a page in the wrong place: %v", err)
	}
}

// TestChangedPages copies only changed pages, and none that is not reported as changed: the file's other pages are
// the base's.
func TestChangedPages(t *testing.T) {
	repo, _ := openRepository(t)
	d := newDataDirectory(t)
	var file []byte
	for n := range uint32(100) {
		file = append(file, page(n, fmt.Sprint(n))...)
	}
	d.write("base/5/1", file)
	d.write("base/5/2", file)
	d.write("base/5/3", file)
	d.write("base/5/4", file)
	if _, err := d.copyAll(repo, "before", nil); err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(file)
	for _, n := range []uint32{3, 17, 18, 99} {
		copy(changed[n*pageSize:], page(n, "changed"))
	}
	d.write("base/5/1", changed)
	d.write("base/5/2", append(slices.Clone(changed), page(100, "grown")...))
	d.write("base/5/3", changed[:50*pageSize]) // shorter: read whole
	d.write("base/5/4", changed)               // not reported
	pages := []uint32{3, 17, 18, 99}
	_, err := d.copyAll(repo, "after", map[string][]uint32{"base/5/1": pages, "base/5/2": pages, "base/5/3": {}})
	if err != nil {
		t.Fatal(err)
	}
	d.mustBeLike(repo, "after")
	// Changes that the WAL does not report are not read.
	if _, err := d.copyAll(repo, "blind", map[string][]uint32{"base/5/1": {3}, "base/5/2": pages, "base/5/3": {}, "base/5/4": {}}); err != nil {
		t.Fatal(err)
	}
	d.write("base/5/4", file)
	half := slices.Clone(file)
	copy(half[3*pageSize:], page(3, "changed"))
	d.write("base/5/1", half)
	d.mustBeLike(repo, "blind")
	report, err := repo.Verify(t.Context(), nil)
	if err != nil || report.Err() != nil {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

// TestTornPage has an invalid page: WAL restores one that changed during the backup, but not others.
func TestTornPage(t *testing.T) {
	repo, _ := openRepository(t)
	d := newDataDirectory(t)
	torn := page(0, "torn")
	torn[5000] = 1
	for lsn, taken := range map[byte]bool{99: false, 100: true, 200: true, 201: false} {
		torn[4] = lsn
		d.write("base/5/1", torn)
		_, err := d.copyAll(repo, fmt.Sprint(lsn), nil)
		if taken != (err == nil) || err != nil && !strings.Contains(err.Error(), "base/5/1 block 0") {
			t.Errorf("LSN %d: %v", lsn, err)
		}
	}
	ahead := page(0, "of a server whose WAL was reset")
	ahead[4] = 201
	binary.LittleEndian.PutUint16(ahead[8:], pageChecksum(ahead, 0))
	d.write("base/5/1", ahead)
	if _, err := d.copyAll(repo, "ahead", nil); err != nil {
		t.Errorf("a page that is sound: %v", err)
	}
}

func TestListFiles(t *testing.T) {
	d := newDataDirectory(t)
	in := []string{
		"PG_VERSION", "base/5/1", "base/5/1_fsm", "base/5/1.1", "base/5/2_init", "base/5/PG_VERSION", "base/5/pg_filenode.map",
		"global/1262", "pg_xact/0000", "postgresql.conf", "pg_multixact/members/0000", "pg_stat/pgstat.stat", "base/5/16384_other",
	}
	out := []string{
		"postmaster.pid", "postmaster.opts", "base/5/2", "base/5/2.1", "base/5/2_fsm", "base/5/t3_77", "base/5/t3_77_fsm", "base/5/t3_77.1",
		"base/5/pg_internal.init", "global/pg_internal.init.42", "base/pgsql_tmp/pgsql_tmp1.0", "base/5/pgsql_tmp9", "pg_wal/000000010000000000000001",
		"pg_wal/archive_status/x.ready", "pg_replslot/s/state", "pg_subtrans/0000", "pg_notify/0000", "pg_stat_tmp/x", "pg_dynshmem/mmap.1",
		"pg_serial/0", "pg_snapshots/0", "log/postgres.log", "log/start.log", "backup_label", "backup_manifest", "current_logfiles.tmp", "standby.signal",
		"server.crt", "server.key",
	}
	for _, name := range append(in, out...) {
		d.write(name, []byte("x"))
	}
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	entries, err := listFiles(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var got, dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, e.Path)
		} else {
			got = append(got, e.Path)
		}
	}
	in = append(in, controlFile)
	slices.Sort(in)
	if !slices.Equal(got, in) {
		t.Errorf("listed %v\nwant %v", got, in)
	}
	for name := range emptied {
		if !slices.Contains(dirs, name) {
			t.Errorf("the directory %s is not listed", name)
		}
	}
	if err := os.MkdirAll(filepath.Join(d.dir, "pg_tblspc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(d.dir, "pg_tblspc/16385")); err != nil {
		t.Fatal(err)
	}
	if _, err := listFiles(t.Context(), root); err == nil || !strings.Contains(err.Error(), "pg_tblspc/16385") {
		t.Errorf("with a tablespace: %v", err)
	}
}

func TestControl(t *testing.T) {
	d := newDataDirectory(t)
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	control, err := readControl(root)
	if err != nil || pgcontrol.SystemIdentifier(control) != 42 {
		t.Fatalf("%v", err)
	}
	flip(t, filepath.Join(d.dir, controlFile), 100)
	if _, err := readControl(root); err == nil {
		t.Error("a damaged pg_control was taken")
	}
}
