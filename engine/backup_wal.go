package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/engine/model"
	"holdfast/engine/publish"
)

// walCopy keeps the WAL between a backup's start and its stop as compressed
// segments of its own: <data>/backups/<database>/wal/<backup>/<segment>.zst. It
// stands in the place of the streaming archive, which holds all WAL, and all of
// this file goes when that takes over.
type walCopy struct {
	conn        *pgx.Conn // holds a slot, and with it the server's WAL
	from, to    string    // pg_wal, and the backup's own directory
	segmentSize uint64
	start       wal.LSN // of the backup; 0 until it is known
}

// keepWAL begins to hold the WAL of a database's instance.
func (e *Engine) keepWAL(ctx context.Context, db model.Database, id string) (*walCopy, error) {
	conn, err := e.instances.Connect(ctx, db.ID, maintenance)
	if err != nil {
		return nil, fmt.Errorf("connect to hold WAL: %w", err)
	}
	w := &walCopy{conn: conn, from: filepath.Join(e.dataDirectory(db.ID, db.Generation), "pg_wal"), to: e.walDirectory(db.ID, id)}
	slot := "holdfast_backup_" + strings.ToLower(rand.Text())
	err = conn.QueryRow(ctx, `select setting::bigint from pg_settings, pg_create_physical_replication_slot($1, true, true)
		where name = 'wal_segment_size'`, slot).Scan(&w.segmentSize)
	if err == nil {
		err = os.MkdirAll(w.to, 0o700)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hold WAL: %w", err), conn.Close(context.WithoutCancel(ctx)))
	}
	return w, nil
}

func (e *Engine) walDirectory(database, id string) string {
	return filepath.Join(e.backupDirectory(database), "wal", id)
}

// close lets go of the server's WAL.
func (w *walCopy) close(ctx context.Context) { _ = w.conn.Close(context.WithoutCancel(ctx)) }

// WaitFor implements backup.WAL. The first LSN is the backup's start, the next
// its stop, by which time the server has begun another segment.
func (w *walCopy) WaitFor(ctx context.Context, timeline uint32, lsn wal.LSN) error {
	if w.start == 0 {
		w.start = lsn
		return nil
	}
	for n := uint64(w.start) / w.segmentSize; n <= (uint64(lsn)-1)/w.segmentSize; n++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.keep(segmentName(timeline, n, w.segmentSize)); err != nil {
			return fmt.Errorf("keep WAL: %w", err)
		}
	}
	return errors.Join(publish.Dir(filepath.Dir(w.to)), publish.Dir(filepath.Dir(filepath.Dir(w.to))))
}

// ChangedPages implements backup.WAL: what lies between two backups is not kept.
func (w *walCopy) ChangedPages(context.Context, uint32, wal.LSN, wal.LSN) (backup.Changes, error) {
	return nil, fmt.Errorf("only the WAL of each backup is kept: %w", wal.ErrGap)
}

func (w *walCopy) keep(segment string) error {
	content, err := os.ReadFile(filepath.Join(w.from, segment))
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer encoder.Close()
	return publish.File(filepath.Join(w.to, segment+".zst"), encoder.EncodeAll(content, nil), 0o600)
}

// segmentName is the file name of segment n, as PostgreSQL's XLogFileName.
func segmentName(timeline uint32, n, size uint64) string {
	perID := (1 << 32) / size
	return fmt.Sprintf("%08X%08X%08X", timeline, n/perID, n%perID)
}

// layWAL puts the WAL a backup needs into the data directory restored from it.
func (e *Engine) layWAL(database, id, dir string) error {
	names, err := filepath.Glob(filepath.Join(e.walDirectory(database, id), "*.zst"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("the WAL of backup %s is missing (%w)", id, err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer decoder.Close()
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read WAL of a backup: %w", err)
		}
		segment := strings.TrimSuffix(filepath.Base(name), ".zst")
		if b, err = decoder.DecodeAll(b, nil); err != nil {
			return fmt.Errorf("the WAL segment %s of backup %s is damaged: %w", segment, id, err)
		}
		if err := publish.File(filepath.Join(dir, "pg_wal", segment), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// removeStrayWAL removes the WAL of backups that are not completed.
func (e *Engine) removeStrayWAL(database string) error {
	records, err := e.backupRecords(database)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(e.backupDirectory(database), "wal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list WAL of backups: %w", err)
	}
	for _, entry := range entries {
		if records[entry.Name()].Status != model.BackupCompleted {
			err = errors.Join(err, os.RemoveAll(e.walDirectory(database, entry.Name())))
		}
	}
	return err
}
