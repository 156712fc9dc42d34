package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/internal/durable"
)

// extractingSuffix marks an incomplete directory.
const extractingSuffix = ".extracting"

// Extract creates a data directory that a plain PostgreSQL of the backup's major version can start, and that
// recovers to the plan's target. It is self-contained and refers to nothing on the original machine. dir must be
// empty or absent; it appears, complete and synced, at the very end.
func Extract(ctx context.Context, source *repository.Snapshot, archive *wal.Archive, plan Plan, dir string, opts RestoreOptions) error {
	// Rmdir fails here rather than at the final rename if dir cannot be replaced.
	err := syscall.Rmdir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("extract backup: %s must be absent, or an empty directory and no link or mount point: %w", dir, err)
	}
	work := dir + extractingSuffix
	err = os.RemoveAll(work) // left by an extract that was killed
	if err == nil {
		err = Restore(ctx, source, work, opts)
	}
	if err == nil {
		err = writeStandAloneDurably(ctx, archive, plan, work)
	}
	if err == nil {
		err = os.Rename(work, dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("extract backup: %w", err), os.RemoveAll(work))
	}
	return durable.SyncDir(durable.OS{}, filepath.Dir(dir))
}

// ExtractTar writes the files that Extract creates to w as a tar stream. It keeps the WAL to be replayed in a
// temporary directory meanwhile.
func ExtractTar(ctx context.Context, source *repository.Snapshot, archive *wal.Archive, plan Plan, w io.Writer) error {
	over, err := os.MkdirTemp("", "holdfast-extract-")
	if err != nil {
		return fmt.Errorf("extract backup: %w", err)
	}
	err = os.Mkdir(filepath.Join(over, "pg_wal"), 0o700)
	if err == nil {
		err = writeStandAlone(ctx, archive, plan, over)
	}
	if err == nil {
		err = WriteTar(ctx, source, w, over)
	}
	if err := errors.Join(err, os.RemoveAll(over)); err != nil {
		return fmt.Errorf("extract backup: %w", err)
	}
	return nil
}

// standAloneSettings override the settings of the original server, whose sockets, addresses, certificate and
// libraries may not exist here.
const standAloneSettings = `# Written with the extracted backup. Until recovery is over:
restore_command = 'false'
recovery_target_lsn = '%v'
recovery_target_inclusive = on
recovery_target_timeline = '%d'
recovery_target_action = 'promote'
hot_standby = off  # so that settings may be smaller than they once were
# To be changed as needed:
port = 5432
listen_addresses = ''
unix_socket_directories = '.'
ssl = off
shared_preload_libraries = ''
logging_collector = off
`

// standAloneRules admit local users who can access the data directory, that is, its owner, without a password.
const standAloneRules = `# Written with the extracted backup: the socket lies in the data directory.
local all all trust
host all all 127.0.0.1/32 scram-sha-256
host all all ::1/128 scram-sha-256
`

// writeStandAlone writes the plan's WAL and the recovery settings into dir. The WAL ends at the target, and
// PostgreSQL refuses to start if it does not reach it.
func writeStandAlone(ctx context.Context, archive *wal.Archive, plan Plan, dir string) error {
	if err := plan.Recovery(archive, dir).Fill(ctx); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"recovery.signal":      "",
		"pg_hba.conf":          standAloneRules,
		"postgresql.auto.conf": fmt.Sprintf(standAloneSettings, plan.Target.Start, plan.Target.Timeline),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeStandAloneDurably is writeStandAlone for a directory whose other files are already synced.
func writeStandAloneDurably(ctx context.Context, archive *wal.Archive, plan Plan, dir string) error {
	tree, err := durable.OpenTree(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := writeStandAlone(ctx, archive, plan, dir); err != nil {
		return err
	}
	return tree.Sync()
}

// filesBelow returns the set of regular files below a directory, by slash-separated name.
func filesBelow(dir string) (names map[string]bool, err error) {
	names = map[string]bool{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names[filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))] = true
		}
		return err
	})
	return names, err
}
