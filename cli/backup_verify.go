package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/cli/remote"
)

func newBackupVerify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify DIR", Short: "Read all of a directory of backups, and name what is damaged",
		Long: "Read every byte of a directory of backups and of its WAL, name what is damaged or missing, and list the\n" +
			"backups and how far each can be rolled forward. The exit code is 1 when something is.",
		Args: exactDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := openVault(args[0])
			if err != nil {
				return err
			}
			report, err := v.verify(cmd.Context())
			if err := errors.Join(err, v.close()); err != nil {
				return err
			}
			if err := report.print(cmd.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if len(report.Damage) > 0 {
				return errors.New("there is damage, listed above")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// vaultReport is the result of verify.
type vaultReport struct {
	Backups []backupReport `json:"backups"` // newest first
	Damage  []string       `json:"damage"`
}

// backupReport is a backup and the point it can be rolled forward to.
type backupReport struct {
	ID              string    `json:"id"`
	Database        string    `json:"database"` // its name when the backup was made
	CompletedAt     time.Time `json:"completed_at"`
	PostgresVersion string    `json:"postgres_version"`
	SizeBytes       int64     `json:"size_bytes"`
	Generation      int       `json:"generation"`
	Timeline        uint32    `json:"timeline"`
	StopLSN         string    `json:"stop_lsn"`
	// The end of its WAL and the time of the last commit in it.
	LatestLSN  string     `json:"latest_lsn"`
	LatestTime *time.Time `json:"latest_time"`
	Restorable bool       `json:"restorable"`
}

func (v vault) verify(ctx context.Context) (report vaultReport, err error) {
	report = vaultReport{Backups: []backupReport{}, Damage: []string{}}
	found, err := v.repository.Verify(ctx, nil)
	if err != nil {
		return report, err
	}
	for _, damage := range found.Damage {
		report.Damage = append(report.Damage, damage.Error())
	}
	orphaned, err := v.repository.Orphaned()
	if err != nil {
		return report, err
	}
	if orphaned {
		report.Damage = append(report.Damage, "no backup has its manifest here, and there is what backups are made of: all manifests are lost, or the first backup is under way")
	}
	backups, _ := v.backups() // unreadable backups are in the report already
	problems, err := v.wal.Verify(ctx)
	if err != nil {
		return report, err
	}
	for _, p := range append(problems, v.wal.Missing(keeps(backups))...) {
		report.Damage = append(report.Damage, fmt.Sprintf("WAL is damaged: %s: %v", filepath.Join("wal", strconv.Itoa(p.Generation), p.File), p.Err))
	}
	for _, b := range backups {
		r := v.report(ctx, b)
		if !r.Restorable && v.isDeleted(b.ID) { // meanwhile, with its WAL
			continue
		}
		if slices.Contains(found.Affected, b.ID) {
			r.Restorable = false
		} else if !r.Restorable {
			report.Damage = append(report.Damage, fmt.Sprintf("the WAL of backup %s, from %s to %s, is not complete", b.ID, b.StartLSN, b.StopLSN))
		}
		report.Backups = append(report.Backups, r)
	}
	return report, nil
}

// isDeleted reports whether a backup that was listed is not there any more.
func (v vault) isDeleted(id string) bool {
	ids, err := v.repository.Backups()
	return err == nil && !slices.Contains(ids, id)
}

// keeps returns the WAL that backups need.
func keeps(backups []repository.Backup) (keep []wal.Keep) {
	for _, b := range backups {
		if start, err := xlog.ParseLSN(b.StartLSN); err == nil {
			keep = append(keep, wal.Keep{Generation: b.Generation, Start: start})
		}
	}
	return keep
}

// report returns the extent of a backup's own history.
func (v vault) report(ctx context.Context, b repository.Backup) backupReport {
	r := backupReport{
		ID: b.ID, Database: b.Label, CompletedAt: b.CompletedAt, PostgresVersion: b.PostgresVersion, SizeBytes: b.SizeBytes,
		Generation: b.Generation, Timeline: b.Timeline, StopLSN: b.StopLSN,
	}
	start, startErr := xlog.ParseLSN(b.StartLSN)
	stop, stopErr := xlog.ParseLSN(b.StopLSN)
	if errors.Join(startErr, stopErr) != nil {
		return r
	}
	window, err := v.wal.Window(ctx, b.Generation, b.Timeline, start)
	if err != nil || window.To < stop {
		return r
	}
	// Check reads the WAL; Window only lists it.
	r.Restorable = v.wal.Check(ctx, b.Generation, b.Timeline, start, stop, nil) == nil
	r.LatestLSN = window.To.String()
	if window.LastCommit.After(b.CompletedAt) {
		r.LatestTime = &window.LastCommit
	}
	return r
}

func (r vaultReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	table := tabwriter.NewWriter(remote.Plain(w), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BACKUP\tDATABASE\tCOMPLETED\tPOSTGRESQL\tMB\tGENERATION\tFROM\tTO\tLAST COMMIT\t")
	for _, b := range r.Backups {
		to, last := cmp.Or(b.LatestLSN, "-"), "-"
		if b.LatestTime != nil {
			last = b.LatestTime.UTC().Format(time.RFC3339Nano)
		}
		if !b.Restorable {
			to, last = "cannot be restored", ""
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t\n", b.ID, b.Database, b.CompletedAt.UTC().Format(time.RFC3339),
			b.PostgresVersion, b.SizeBytes>>20, b.Generation, b.StopLSN, to, last)
	}
	for _, damage := range r.Damage {
		fmt.Fprintln(table, damage)
	}
	return table.Flush()
}
