package cli_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

type vaultReport struct {
	Backups []struct {
		ID         string `json:"id"`
		Database   string `json:"database"`
		LatestLSN  string `json:"latest_lsn"`
		Restorable bool   `json:"restorable"`
	} `json:"backups"`
	Damage []string `json:"damage"`
}

// offline runs the program without an appliance.
func offline(t testing.TB, args ...string) (stdout []byte, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return out.Bytes(), errs.String(), cmd.ProcessState.ExitCode()
}

func verifyVault(t testing.TB, dir string) (report vaultReport, code int) {
	t.Helper()
	out, errs, code := offline(t, "backup", "verify", dir, "--json")
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("verify: %v: %s%s", err, out, errs)
	}
	return report, code
}

// commit is the position and time of a number's commit.
type commit struct{ lsn, at string }

func commitNumbers(t testing.TB, url string, from, to int) map[int]commit {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	commits := map[int]commit{}
	for n := from; n <= to; n++ {
		var c commit
		if _, err := conn.Exec(t.Context(), "insert into numbers values ($1)", n); err != nil {
			t.Fatal(err)
		}
		err := conn.QueryRow(t.Context(), `select pg_current_wal_insert_lsn()::text,
			to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`).Scan(&c.lsn, &c.at)
		if err != nil {
			t.Fatal(err)
		}
		commits[n] = c
	}
	return commits
}

// TestBackupExtract checks that a copy of the directory of backups is enough to
// start a server at any point in time that verify reports as whole.
func TestBackupExtract(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.start("--no-exports")
	db := m.createDatabase("shop")
	url := m.connectionURL(db.ID)
	query(t, url, "create table numbers (n int)")
	commitNumbers(t, url, 1, 5)
	first := m.backup(db.ID)
	query(t, url, "select pg_logical_emit_message(false, 'fill', repeat('x', 20 << 20))") // more than one segment
	commits := commitNumbers(t, url, 6, 20)
	source := filepath.Join(m.dataDir, "backups", db.ID)
	awaitArchived(t, source, first.ID, commits[20].lsn) // while the appliance runs
	m.must("POST", "/databases/"+db.ID+"/backups/"+first.ID+"/restore", nil, nil)
	m.awaitAvailable(db.ID)
	url = m.connectionURL(db.ID)
	second := ""
	testenv.Eventually(t, "the backup that follows a restore", func() bool {
		report, _ := verifyVault(t, source)
		second = report.Backups[0].ID
		return second != first.ID
	})
	again := commitNumbers(t, url, 100, 101)
	awaitArchived(t, source, second, again[101].lsn)

	m.stop()
	dir := filepath.Dir(m.dataDir)
	vault := filepath.Join(dir, "copy")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", source, vault).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll(m.dataDir); err != nil {
		t.Fatal(err)
	}
	if report, code := verifyVault(t, vault); code != 0 || len(report.Damage) > 0 || len(report.Backups) < 2 {
		t.Errorf("verify: code %d, %+v", code, report)
	} else if last := report.Backups[len(report.Backups)-1]; last.ID != first.ID || last.Database != "shop" {
		t.Errorf("verify does not say which database it is: %+v", last)
	}
	refuseIncompleteCopies(t, vault)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"its end":                  {[]string{"--backup", first.ID}, "5 15"},
		"a position":               {[]string{"--backup", first.ID, "--to-lsn", commits[12].lsn}, "12 78"},
		"a time":                   {[]string{"--backup", first.ID, "--to-time", commits[17].at}, "17 153"},
		"a time, wherever it lies": {[]string{"--to-time", commits[17].at}, "17 153"},
		"all there is":             {[]string{"--backup", first.ID, "--to-lsn", "latest"}, "20 210"},
		"the newest":               {[]string{"--to-lsn", "latest"}, "7 216"},
		"the newest's end":         {nil, "5 15"},
		"another history":          {[]string{"--backup", first.ID, "--generation", "2", "--to-lsn", again[100].lsn}, "6 115"},
	} {
		out := filepath.Join(dir, "out")
		words, errs, code := offline(t, append([]string{"backup", "extract", vault, "--out", out}, c.args...)...)
		if code != 0 || !strings.Contains(string(words), "postgres -D "+out) {
			t.Fatalf("%s: code %d: %s%s", name, code, words, errs)
		}
		if got := numbersOf(t, out); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
	extractBesideDamage(t, vault, first.ID, second)
	archive, errs, code := offline(t, "backup", "extract", vault, "--backup", first.ID, "--to-lsn", commits[9].lsn, "--tar", "-")
	if code != 0 || !strings.Contains(errs, "postgres -D") {
		t.Fatalf("tar: code %d: %s", code, errs)
	}
	out := filepath.Join(dir, "out")
	untar(t, archive, out)
	if got := numbersOf(t, out); got != "9 45" {
		t.Errorf("from the tar stream: %s", got)
	}
	var made struct {
		Backup    string
		LSN       string
		Directory string `json:"data_directory"`
	}
	words, errs, code := offline(t, "backup", "extract", vault, "--backup", first.ID, "--to-lsn", commits[9].lsn, "--out", out, "--json")
	if err := json.Unmarshal(words, &made); err != nil || code != 0 || made.Backup != first.ID || made.LSN == "" || made.Directory != out {
		t.Errorf("as JSON: code %d, %v: %s%s", code, err, words, errs)
	}
	refuseExtracts(t, vault, first.ID)
}

// extractBesideDamage damages the files of one backup's generation: verify
// reports it, and the other backup can still be extracted.
func extractBesideDamage(t *testing.T, vault, whole, affected string) {
	t.Helper()
	path := filepath.Join(vault, "wal", "2", "incarnation")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	report, code := verifyVault(t, vault)
	if code != 1 || len(report.Damage) == 0 || !strings.Contains(report.Damage[0], filepath.Join("wal", "2", "incarnation")) {
		t.Errorf("verify: code %d, %+v", code, report)
	}
	for _, b := range report.Backups {
		if b.ID == whole && !b.Restorable || b.ID == affected && b.Restorable {
			t.Errorf("verify says %+v", b)
		}
	}
	out := filepath.Join(filepath.Dir(vault), "out")
	if words, errs, code := offline(t, "backup", "extract", vault, "--out", out, "--backup", whole); code != 0 {
		t.Fatalf("beside damage: code %d: %s%s", code, words, errs)
	}
	if got := numbersOf(t, out); got != "5 15" {
		t.Errorf("beside damage: %s", got)
	}
	if _, errs, code := offline(t, "backup", "extract", vault, "--out", out, "--backup", affected); code != 1 || !strings.Contains(errs, path) {
		t.Errorf("of what is damaged: code %d: %s", code, errs)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// refuseIncompleteCopies checks that verify reports missing files.
func refuseIncompleteCopies(t *testing.T, vault string) {
	t.Helper()
	for name, c := range map[string]struct {
		remove string // removes the last match, or all
		all    bool
		says   string
	}{
		"a segment of WAL": {remove: "wal/1/*.zst", says: "WAL after it"},
		"every manifest":   {remove: "repository/manifests/*", all: true, says: "manifest"},
	} {
		dir := filepath.Join(filepath.Dir(vault), "incomplete")
		if out, err := exec.CommandContext(t.Context(), "cp", "-al", vault, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files, err := filepath.Glob(filepath.Join(dir, c.remove))
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: %v, %v", name, files, err)
		}
		if !c.all {
			files = files[len(files)-1:]
		}
		for _, path := range files {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		report, code := verifyVault(t, dir)
		if code != 1 || len(report.Damage) != 1 || !strings.Contains(report.Damage[0], c.says) {
			t.Errorf("without %s: code %d, %+v", name, code, report)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// refuseExtracts checks that impossible extracts are refused with a message and
// leave nothing.
func refuseExtracts(t *testing.T, vault, id string) {
	t.Helper()
	out := filepath.Join(filepath.Dir(vault), "refused")
	for want, args := range map[string][]string{
		"after the latest":     {"--backup", id, "--to-time", "2100-01-01T00:00:00Z"},
		"before the end of":    {"--to-time", "2020-01-01T00:00:00Z"},
		"no backup bkp_none":   {"--backup", "bkp_none"},
		"is not a time":        {"--to-time", "yesterday"},
		"no generation 7":      {"--generation", "7", "--to-lsn", "latest"},
		"one of the two":       {"--to-time", "2100-01-01T00:00:00Z", "--to-lsn", "0/1"},
		"say where to":         {"--tar", "-"},
		"is no directory of b": nil,
	} {
		from := vault
		if args == nil {
			from = filepath.Dir(vault)
		}
		_, errs, code := offline(t, append([]string{"backup", "extract", from, "--out", out}, args...)...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
	refuseDirectories(t, vault)
	damagePack(t, vault)
	_, errs, code := offline(t, "backup", "extract", vault, "--out", out)
	if code != 1 || !strings.Contains(errs, ".pack") {
		t.Errorf("of a damaged one: code %d: %s", code, errs)
	}
	report, code := verifyVault(t, vault)
	if code != 1 || len(report.Damage) == 0 || !strings.Contains(report.Damage[0], ".pack") {
		t.Errorf("verify of a damaged one: code %d, %+v", code, report)
	}
	left, _ := filepath.Glob(out + "*")
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// refuseDirectories checks that an unsuitable target directory is refused
// before anything is written.
func refuseDirectories(t *testing.T, vault string) {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.MkdirAll(in("full/of"), 0o700), os.Mkdir(in("empty"), 0o700), os.Symlink(in("empty"), in("link")),
		os.WriteFile(in("file"), nil, 0o600), os.Mkdir(in("mounted"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	wrong := []string{"full", "link", "file"}
	if exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "none", in("mounted")).Run() == nil { // usually needs root
		defer exec.Command("umount", in("mounted")).Run()
		wrong = append(wrong, "mounted")
	}
	for _, name := range wrong {
		_, errs, code := offline(t, "backup", "extract", vault, "--out", in(name))
		if code != 1 || !strings.Contains(errs, "must be absent, or an empty directory") {
			t.Errorf("%s: code %d: %s", name, code, errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// damagePack changes a byte in each KiB of the largest pack: later backups refer to
// most of its chunks, not to each of them. A second call repairs it.
func damagePack(t *testing.T, vault string) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(vault, "repository", "packs", "*.pack"))
	var largest []byte
	var path string
	for _, pack := range packs {
		content, readErr := os.ReadFile(pack)
		err = errors.Join(err, readErr)
		if len(content) > len(largest) {
			path, largest = pack, content
		}
	}
	if err != nil || path == "" {
		t.Fatalf("packs: %v, %v", packs, err)
	}
	for at := 1 << 10; at < len(largest); at += 1 << 10 {
		largest[at] ^= 1
	}
	if err := os.WriteFile(path, largest, 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitArchived waits until a backup can be rolled forward to a position.
func awaitArchived(t *testing.T, dir, id, position string) {
	t.Helper()
	want, err := xlog.ParseLSN(position)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the archive of "+position, func() bool {
		report, _ := verifyVault(t, dir)
		for _, b := range report.Backups {
			if latest, err := xlog.ParseLSN(b.LatestLSN); b.ID == id && err == nil && latest >= want {
				return true
			}
		}
		return false
	})
}

// numbersOf starts plain PostgreSQL on a data directory, reads the numbers from
// it, and removes it.
func numbersOf(t *testing.T, dir string) string {
	t.Helper()
	credential := giveAway(t, dir)
	var log lockedBuffer
	cmd := exec.Command(postgrestest.Binaries(t).Tool("postgres"), "-D", dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("plain PostgreSQL: %v: %s", err, log.String())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	result := ""
	if !testenv.Poll(time.Minute, func() bool {
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=5432 user=holdfast dbname=shop sslmode=disable", dir))
		if err != nil {
			return false
		}
		recovering := true
		err = conn.QueryRow(t.Context(), "select pg_is_in_recovery(), count(*) || ' ' || sum(n) from public.numbers").Scan(&recovering, &result)
		if err := errors.Join(err, conn.Close(t.Context())); err != nil {
			t.Fatalf("%v: %s", err, log.String())
		}
		return !recovering
	}) {
		t.Fatalf("plain PostgreSQL does not come up: %s", log.String())
	}
	return result
}

// giveAway makes an ordinary user the owner of a directory, if the test runs as
// root.
func giveAway(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	const nobody = 65534
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

func untar(t *testing.T, archive []byte, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, header.Name)
		if seen[path] {
			t.Errorf("%s is in the stream twice", header.Name)
		}
		seen[path] = true
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else if content, readErr := io.ReadAll(reader); readErr != nil {
			err = readErr
		} else {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
