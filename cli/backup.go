package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
)

// addOffline adds commands that need only a directory of backups,
// DATA/backups/DATABASE-ID or a copy of it, to the backup commands that ask an
// appliance. They change nothing. They also work while the appliance runs; what
// it removes meanwhile is then reported as missing.
func addOffline(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() == "backup" {
			cmd.AddCommand(newBackupVerify(), newBackupExtract())
		}
	}
}

// vault is a directory of backups, open for reading.
type vault struct {
	repository *repository.Repository
	wal        *wal.Archive
}

func openVault(dir string) (v vault, err error) {
	if v.repository, err = repository.OpenForReading(filepath.Join(dir, "repository")); err != nil {
		return v, fmt.Errorf("%s is no directory of backups (DATA/backups/DATABASE-ID): %w", dir, err)
	}
	v.wal, err = wal.Open(filepath.Join(dir, "wal"), wal.Options{ReadOnly: true})
	if err != nil {
		err = errors.Join(err, v.repository.Close())
	}
	return v, err
}

func (v vault) close() error { return errors.Join(v.wal.Close(), v.repository.Close()) }

// backups returns the backups with readable manifests, newest first; the error
// names the others.
func (v vault) backups() (all []repository.Backup, err error) {
	ids, err := v.repository.Backups()
	for _, id := range ids {
		m, _, readErr := v.repository.Manifest(id)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		all = append(all, m.Backup)
	}
	slices.SortFunc(all, func(a, b repository.Backup) int { return b.CompletedAt.Compare(a.CompletedAt) })
	return all, err
}

// exactDirectory accepts exactly one directory.
func exactDirectory(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name one directory of backups")
	}
	return nil
}
