package backup

import (
	"context"
	"errors"
	"fmt"

	"holdfast/blobstore"
)

// RestoreOptions are options of Restore.
type RestoreOptions struct {
	// Progress, if set, is called for every MiB, and at the end, with the bytes
	// of the archive unpacked and how many there are. The restore waits for it.
	Progress func(doneBytes, totalBytes int64)
}

// ErrDamaged means that a stored backup is not what Take stored: a byte
// changed, or bytes are missing. The text says where. Do not retry.
var ErrDamaged = errors.New("backup is damaged")

// Restore makes the data directory dir from a backup. dir must be empty, or
// absent in a directory that exists. The caller's user will own the files, and
// be the one to run PostgreSQL on them; the first start recovers from the WAL
// that comes with the backup, to the backup's StopLSN at least.
//
// When it returns nil, dir is complete and synced to disk. When it fails it
// removes what it wrote, and may be retried. When the process ends in the
// middle, dir has no global/pg_control: remove it.
func Restore(ctx context.Context, store *blobstore.Store, source Result, dir string, opts RestoreOptions) error {
	if err := restore(ctx, store, source, dir, opts); err != nil {
		return fmt.Errorf("restore base backup: %w", err)
	}
	return nil
}

func restore(ctx context.Context, store *blobstore.Store, source Result, dir string, opts RestoreOptions) error {
	if err := source.check(); err != nil {
		return err
	}
	t, err := openTarget(dir)
	if err != nil {
		return err
	}
	defer t.close()
	u := &unpacking{
		ctx: ctx, store: store, source: source, target: t,
		progress: &progress{tell: opts.Progress, total: source.SizeBytes},
	}
	if err := u.run(); err != nil {
		return errors.Join(err, t.discard())
	}
	u.progress.finish()
	return nil
}
