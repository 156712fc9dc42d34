package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres"
)

// extraction holds the flags of `backup extract`.
type extraction struct {
	backup, time, lsn, out, tar string
	generation                  int
	json                        bool
}

func newBackupExtract() *cobra.Command {
	var x extraction
	cmd := &cobra.Command{
		Use: "extract DIR", Short: "Make a data directory that plain PostgreSQL starts",
		Long: "Make, from a directory of backups, a data directory that plain PostgreSQL of the same major version starts,\n" +
			"or a tar stream of one. It comes up as it was at the end of the backup, or with --to-time or --to-lsn at that\n" +
			"moment exactly: everything committed by then, and nothing after it. Without --backup it uses the newest\n" +
			"backup from which that can be reached. Run it as the user that will run PostgreSQL, which refuses to run as root.",
		Args: exactDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return x.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&x.backup, "backup", "latest", "id of the backup, or latest")
	flags.StringVar(&x.time, "to-time", "", "roll forward to this time, as 2026-01-02T15:04:05Z")
	flags.StringVar(&x.lsn, "to-lsn", "", "roll forward to this position, as 0/3000148, or to the latest there is (latest)")
	flags.IntVar(&x.generation, "generation", 0, "roll forward on this generation's history, where restores have made several; 0 = the backup's own")
	flags.StringVar(&x.out, "out", "", "data directory to make, empty or absent")
	flags.BoolVar(&x.json, "json", false, "print JSON; with --tar, to standard error")
	flags.StringVar(&x.tar, "tar", "", "- writes a tar stream to standard output instead")
	return cmd
}

func (x extraction) run(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	if err := x.check(); err != nil {
		return usageError{err}
	}
	v, err := openVault(dir)
	if err != nil {
		return err
	}
	b, plan, err := x.plan(ctx, v)
	if err == nil {
		err = x.extract(ctx, v, b, plan, stdout)
	}
	if err := errors.Join(err, v.close()); err != nil {
		return err
	}
	words := stdout
	if x.tar != "" {
		words = stderr
	}
	return x.explain(words, b, plan)
}

func (x extraction) check() error {
	switch {
	case (x.out == "") == (x.tar == ""):
		return errors.New("say where to: --out DATADIR, or --tar -")
	case x.tar != "" && x.tar != "-":
		return errors.New("--tar: only - (standard output) is known; redirect it")
	case x.time != "" && x.lsn != "":
		return errors.New("--to-time and --to-lsn: one of the two")
	}
	return nil
}

// plan chooses the backup and the point to roll it forward to.
func (x extraction) plan(ctx context.Context, v vault) (b repository.Backup, plan backup.Plan, err error) {
	all, unreadable := v.backups()
	err = backup.ErrAfterTarget
	for _, b = range all {
		if x.backup != "latest" && x.backup != b.ID {
			continue
		}
		if plan, err = x.planFrom(ctx, v.wal, b); !errors.Is(err, backup.ErrAfterTarget) {
			return b, plan, err
		}
	}
	if len(all) == 0 || x.backup != "latest" && !hasBackup(all, x.backup) {
		return b, plan, errors.Join(fmt.Errorf("there is no backup %s here; `holdfast backup verify` lists those there are", x.backup), unreadable)
	}
	return b, plan, errors.Join(fmt.Errorf("the moment is before the end of the oldest backup that was tried: %w", err), unreadable)
}

func hasBackup(all []repository.Backup, id string) bool {
	for _, b := range all {
		if b.ID == id {
			return true
		}
	}
	return false
}

func (x extraction) planFrom(ctx context.Context, archive *wal.Archive, b repository.Backup) (backup.Plan, error) {
	target, err := x.target(ctx, archive, b)
	if err != nil {
		return backup.Plan{}, err
	}
	if _, err := archive.Generation(target.Generation); err != nil {
		return backup.Plan{}, err
	}
	stop, err := xlog.ParseLSN(b.StopLSN)
	if err != nil {
		return backup.Plan{}, err
	}
	if !archive.Leads(wal.Position{Generation: b.Generation, Timeline: b.Timeline, LSN: stop}, target.Generation) {
		return backup.Plan{}, fmt.Errorf("backup %s cannot be rolled forward on generation %d", b.ID, target.Generation)
	}
	return backup.NewPlan(ctx, archive, b, target)
}

func (x extraction) target(ctx context.Context, archive *wal.Archive, b repository.Backup) (t wal.Target, err error) {
	t = wal.Target{Generation: b.Generation}
	if x.generation != 0 {
		t.Generation = x.generation
	}
	switch {
	case x.time != "":
		if t.Time, err = time.Parse(time.RFC3339Nano, x.time); err != nil {
			return t, usageError{fmt.Errorf("--to-time: %q is not a time such as 2026-01-02T15:04:05Z", x.time)}
		}
	case x.lsn == "latest":
		t.LSN, err = latest(ctx, archive, b, t)
	case x.lsn != "":
		if t.LSN, err = xlog.ParseLSN(x.lsn); err != nil || t.LSN == 0 {
			return t, usageError{fmt.Errorf("--to-lsn: %q is not an LSN such as 0/3000148, or latest", x.lsn)}
		}
	default: // its own history, even if others exist
		t.Generation, t.Timeline = b.Generation, b.Timeline
		t.LSN, err = xlog.ParseLSN(b.StopLSN)
	}
	return t, err
}

// latest returns the end of the WAL that a backup can be rolled forward with.
// It plans for an LSN past all others; the refusal contains the end.
func latest(ctx context.Context, archive *wal.Archive, b repository.Backup, t wal.Target) (xlog.LSN, error) {
	t.LSN = ^xlog.LSN(0) >> 1
	_, err := backup.NewPlan(ctx, archive, b, t)
	if outside, ok := errors.AsType[*wal.OutsideError](err); ok {
		return outside.LatestLSN, nil
	}
	return 0, err
}

func (x extraction) extract(ctx context.Context, v vault, b repository.Backup, plan backup.Plan, stdout io.Writer) error {
	source, err := v.repository.Snapshot(b.ID)
	if err != nil {
		return err
	}
	defer source.Close()
	if x.tar != "" {
		return backup.ExtractTar(ctx, source, v.wal, plan, stdout)
	}
	return backup.Extract(ctx, source, v.wal, plan, filepath.Clean(x.out), backup.RestoreOptions{})
}

// extracted is the result of extract.
type extracted struct {
	Backup       string     `json:"backup"`
	LSN          string     `json:"lsn"`            // that it was rolled forward to
	LastCommitAt *time.Time `json:"last_commit_at"` // null if unknown
	Major        string     `json:"postgres_major"`
	Directory    *string    `json:"data_directory"` // null for a tar stream
	Superuser    string     `json:"superuser"`
}

// explain prints what was created and how to start it.
func (x extraction) explain(w io.Writer, b repository.Backup, plan backup.Plan) error {
	made := extracted{Backup: b.ID, LSN: plan.Target.End.String(), Superuser: postgres.Superuser}
	made.Major, _, _ = strings.Cut(b.PostgresVersion, ".")
	if !plan.At.IsZero() {
		made.LastCommitAt = new(plan.At.UTC())
	}
	if absolute, err := filepath.Abs(x.out); err == nil && x.out != "" {
		made.Directory = &absolute
	}
	return printResult(w, x.json, made, func(w io.Writer, made extracted) { made.print(w) })
}

func (made extracted) print(w io.Writer) {
	dir := "DATADIR"
	if made.Directory != nil {
		dir = *made.Directory
	}
	fmt.Fprintf(w, "Backup %s, rolled forward to %s", made.Backup, made.LSN)
	if made.LastCommitAt != nil {
		fmt.Fprintf(w, ", the last commit at %s", made.LastCommitAt.Format(time.RFC3339Nano))
	}
	fmt.Fprintf(w, ".\nStart it with PostgreSQL %s, as the owner of its files:\n\n  postgres -D %s\n\n", made.Major, dir)
	if os.Geteuid() == 0 {
		fmt.Fprintf(w, "You are root, and PostgreSQL refuses to be: chown -R postgres %s first.\n", dir)
	}
	fmt.Fprintf(w, "It stops replaying exactly there, and goes on as a server of its own, which refuses connections until then. It listens on\n"+
		"its socket in the data directory only; postgresql.auto.conf there changes that:\n\n  psql -h %s -p 5432 -U %s -l\n", dir, made.Superuser)
}
