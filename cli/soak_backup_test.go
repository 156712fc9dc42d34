package cli_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// soakKept is the number of backups kept of a database.
const soakKept = 2

// backUpAll repeatedly backs up every database, several concurrently.
func (s *soak) backUpAll(over context.Context, actors *sync.WaitGroup) {
	const each = 15 // databases per actor
	for n := 0; n*each < len(s.databases); n++ {
		own := s.databases[n*each : min((n+1)*each, len(s.databases))]
		api, hangUp := s.newAPI(n)
		actors.Go(func() {
			defer hangUp()
			for i := rand.IntN(len(own)); over.Err() == nil; i++ {
				s.backUp(over, api, own[i%len(own)])
				think(over, *soakThink/2)
			}
		})
	}
}

// backUp makes a backup, and waits until it is verified and exported.
func (s *soak) backUp(over context.Context, api *client.Client, database string) {
	var b wire.Backup
	if !s.ask("begin a backup", func(ctx context.Context) (err error) {
		b, err = api.CreateBackup(ctx, database)
		return err
	}) {
		think(over, 5*time.Second) // a key may make ten a minute
		return
	}
	ok := s.ask("backup", func(ctx context.Context) (err error) {
		b, err = api.AwaitBackup(ctx, database, b.ID, nil)
		switch {
		case err != nil || b.Status == wire.BackupCompleted:
			return err
		case strings.Contains(deref(b.Error), "gave way to a restore"): // a branch is one where the file system shares no blocks
			return &client.Error{Code: wire.CodeRateLimited, RetryAfter: time.Second}
		}
		return fmt.Errorf("%s: %s", b.Status, deref(b.Error))
	})
	ok = ok && s.ask("verification", func(context.Context) error { return s.awaitVerification(api, b) })
	ok = ok && s.ask("export", func(ctx context.Context) error { return compareExport(ctx, api, database) })
	if !ok {
		return
	}
	kept := 0
	s.ask("delete backups", func(ctx context.Context) error {
		for b, err := range api.Backups(ctx, database, client.BackupOptions{}) {
			if err != nil {
				return err
			}
			if kept++; kept <= soakKept {
				continue
			}
			if _, err := api.DeleteBackup(ctx, database, b.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitVerification waits until a backup is verified.
func (s *soak) awaitVerification(api *client.Client, b wire.Backup) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), soakPatience)
	defer cancel()
	for {
		now, err := api.GetBackup(ctx, b.DatabaseID, b.ID)
		switch {
		case err != nil:
			return err
		case now.Verification.Status == wire.VerificationFailed:
			return fmt.Errorf("the verification failed: %s", deref(now.Verification.Detail))
		case now.Verification.VerifiedAt != nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no verification: %+v: %w", now.Verification, ctx.Err())
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// compareExport downloads the newest export.
func compareExport(ctx context.Context, api *client.Client, database string) error {
	x, err := api.AwaitExport(ctx, database, "", nil)
	if err != nil {
		return err
	}
	if x.Status != wire.ExportReady {
		return fmt.Errorf("%s: %s", x.Status, deref(x.Error))
	}
	body, err := api.OpenDownload(ctx, *x.DownloadURL, "", 0)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != *x.ChecksumSHA256 {
		err = fmt.Errorf("an export of %d bytes with the checksum %s: %s", n, got, describeExport(x))
	}
	return err
}

// benchedEvery is of how many databases pgbench uses one.
const benchedEvery = 4

// isBenched reports whether pgbench uses a database.
func (s *soak) isBenched(n int) bool { return n%benchedEvery == 0 }

// pgbench runs pgbench to its end.
func (s *soak) pgbench(ctx context.Context, args ...string) (stdout string) {
	cmd := exec.CommandContext(ctx, "pgbench", args...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=", "PGCONNECT_TIMEOUT=20")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("pgbench: %v: %s", err, out)
	}
	return string(out)
}

// committed matches the number of committed transactions in pgbench's report.
var committed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)

// bench runs pgbench on a database, at a pace that leaves capacity for others.
func (s *soak) bench(n int, life time.Duration) {
	const clients, pace = "2", "5" // transactions a second
	log := filepath.Join(s.t.TempDir(), "log")
	out := s.pgbench(s.t.Context(), "--no-vacuum", "--client", clients, "--rate", pace, "--log", "--log-prefix", log,
		"--time", strconv.Itoa(max(1, int(life.Seconds()))), s.urls[n])
	found := committed.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, "aborted") {
		s.t.Errorf("pgbench: %s", out)
		return
	}
	count, _ := strconv.Atoi(found[1])
	s.benched[n] += count
	s.readBenched(log)
}

// readBenched records the duration of each transaction: the third column of
// pgbench's log, in microseconds.
func (s *soak) readBenched(log string) {
	files, _ := filepath.Glob(log + "*")
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			s.t.Error(err)
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 2 {
				micros, _ := strconv.Atoi(fields[2])
				s.figures.add("pgbench", time.Duration(micros)*time.Microsecond)
			}
		}
		f.Close()
	}
}

// checkBenched checks that every transaction reported by pgbench is there
// exactly once, and intact.
func (s *soak) checkBenched() {
	const sums = `select count(*), sum(delta), (select sum(abalance) from pgbench_accounts),
		(select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers) from pgbench_history`
	total := 0
	for n, url := range s.urls {
		if !s.isBenched(n) {
			continue
		}
		total += s.benched[n]
		found := strings.FieldsFunc(query(s.t, url, sums), func(r rune) bool { return r == ' ' || r == '|' || r == ',' })
		if len(found) != 5 || found[0] != strconv.Itoa(s.benched[n]) || found[1] != found[2] || found[1] != found[3] || found[1] != found[4] {
			s.t.Errorf("the database %d, of %d transactions: count, sums of history, accounts, branches, tellers: %v", n, s.benched[n], found)
		}
	}
	if total == 0 {
		s.t.Error("pgbench has done nothing")
	}
	s.t.Logf("%d transactions of pgbench are there, and add up", total)
}
