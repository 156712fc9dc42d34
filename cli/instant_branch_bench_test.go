package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/rounds"
)

// BenchmarkInstantBranch measures the way to a branch of 1 GB and of 10 GB on XFS, from the request until the branch's
// first query is answered, in milliseconds. The data are pages of zeros, which are allocated but mean nothing to
// PostgreSQL: a clone does not read them.
func BenchmarkInstantBranch(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("only root can mount the file system that this needs")
	}
	m := newMachine(b)
	m.moveToXFS(b, 24<<30)
	m.start("--budgets", "create_database=10000/1m", "--trash-retention", "0", "--backup-interval", "0")
	m.key = createKey(b, m, "--preset", "full_access", "--allow-dangerous")
	i := &instant{b: b, m: m}
	for _, gigabytes := range []int{1, 10} {
		parent := i.filled(gigabytes)
		var took []float64
		for range b.N {
			for range rounds.Least {
				took = append(took, i.branch(parent))
			}
		}
		name := fmt.Sprintf("branch-of-%d-GB", gigabytes)
		i.report(name, took)
		i.m.must("DELETE", "/databases/"+parent, nil, nil)
	}
}

// moveToXFS gives a machine a data directory on an XFS of size bytes.
func (m *machine) moveToXFS(b *testing.B, size int64) {
	b.Helper()
	m.dataDir = filepath.Join(mountXFS(b, size), "data")
	b.Cleanup(m.stop) // before the file system is unmounted
}

// mountXFS makes and mounts an XFS of size bytes.
func mountXFS(b *testing.B, size int64) string {
	b.Helper()
	base, err := os.MkdirTemp("", "hf-xfs-")
	if err != nil {
		b.Fatal(err)
	}
	image, at := filepath.Join(base, "image"), filepath.Join(base, "at")
	f, err := os.Create(image)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close(), os.Mkdir(at, 0o755), os.Chmod(base, 0o755))
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(base) })
	for _, args := range [][]string{{"mkfs.xfs", "-q", "-m", "reflink=1", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			b.Skipf("an XFS image cannot be made and mounted here: %v %s", err, out)
		}
	}
	b.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			b.Errorf("umount: %v %s", err, out)
		}
	})
	if err := os.Chmod(at, 0o777); err != nil {
		b.Fatal(err)
	}
	return at
}

// filePath returns the path of the file of a new table in the data directory.
func (i *instant) filePath(url string) (path string) {
	conn, err := pgx.Connect(i.b.Context(), url)
	if err != nil {
		i.b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(i.b.Context()))
	if _, err := conn.Exec(i.b.Context(), "create table big (n int)"); err != nil {
		i.b.Fatal(err)
	}
	if err := conn.QueryRow(i.b.Context(), "select pg_relation_filepath('big')").Scan(&path); err != nil {
		i.b.Fatal(err)
	}
	return path
}

// filled creates a database with a table of that size, and returns its id.
func (i *instant) filled(gigabytes int) string {
	i.made++
	var made struct {
		ID          string
		Credentials struct {
			URL string `json:"connection_url"`
		}
	}
	i.m.must("POST", "/databases", map[string]any{"name": fmt.Sprintf("d%d", i.made), "project": i.m.project()}, &made)
	path := i.filePath(made.Credentials.URL)
	for n := range gigabytes {
		file := filepath.Join(i.m.dataDir, "instances", made.ID, "1", path)
		if n > 0 {
			file += fmt.Sprintf(".%d", n)
		}
		if err := fillFile(file, 1<<30); err != nil {
			i.b.Fatal(err)
		}
	}
	return made.ID
}

// fillFile extends a file with zeros to size bytes.
func fillFile(path string, size int64) error {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	owner := dir.Sys().(*syscall.Stat_t)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	at, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = io.CopyN(f, zeros{}, size-at)
	}
	return errors.Join(err, f.Sync(), f.Close(), os.Chown(path, int(owner.Uid), int(owner.Gid)))
}

// branch measures a branch, which is deleted afterwards.
func (i *instant) branch(parent string) float64 {
	time.Sleep(time.Second)
	i.made++
	began := time.Now()
	var made struct {
		Database  struct{ ID string }
		Operation struct{ ID string }
		Method    string
	}
	i.m.must("POST", "/databases/"+parent+"/branches", map[string]any{"name": fmt.Sprintf("d%d", i.made)}, &made)
	var op struct {
		Status string
		Error  *string
	}
	i.m.must("GET", "/operations/"+made.Operation.ID+"?wait=60s", nil, &op)
	if made.Method != "clone" || op.Status != "completed" {
		i.b.Fatalf("by %s: %s, %s", made.Method, op.Status, deref(op.Error))
	}
	var connection struct {
		URL string `json:"connection_url"`
	}
	i.m.must("GET", "/databases/"+made.Database.ID+"/connection", nil, &connection)
	i.query(connection.URL)
	took := since(began)
	i.m.must("DELETE", "/databases/"+made.Database.ID, nil, nil)
	return took
}
