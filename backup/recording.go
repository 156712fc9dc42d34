package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/blobstore"
)

// recording is a backup being made: what the server sends, on its way into two
// blobs.
type recording struct {
	store    *blobstore.Store
	archive  *archiveSink
	manifest *manifestSink
	progress *progress
}

// newRecording begins both blobs. The caller ends it, by run's success or by
// abort.
func newRecording(ctx context.Context, store *blobstore.Store, p *progress) (*recording, error) {
	archive, err := newArchiveSink(ctx, store, p)
	if err != nil {
		return nil, err
	}
	manifest, err := newManifestSink(ctx, store, archive)
	if err != nil {
		return nil, errors.Join(err, archive.abort())
	}
	return &recording{store: store, archive: archive, manifest: manifest, progress: p}, nil
}

// run sends command, records the answer and commits it.
func (r *recording) run(ctx context.Context, conn *pgconn.PgConn, command, slot string) (Result, error) {
	conn.Frontend().Send(&pgproto3.Query{String: command})
	if err := conn.Frontend().Flush(); err != nil {
		return Result{}, fmt.Errorf("send command: %w", err)
	}
	s := &stream{archive: r.archive, manifest: r.manifest, sizeKnown: func(bytes int64) { r.progress.total = bytes }}
	if err := s.receive(ctx, conn); err != nil {
		return Result{}, err
	}
	if err := r.manifest.finish(); err != nil {
		return Result{}, err
	}
	wal := walRange{timeline: s.stopped.timeline, start: s.started.at, stop: s.stopped.at}
	if r.manifest.wal != wal || s.started.timeline != wal.timeline {
		return Result{}, fmt.Errorf("server says the backup needs WAL %v, its manifest says %v", wal, r.manifest.wal)
	}
	if err := releaseWAL(ctx, conn, slot); err != nil {
		return Result{}, err
	}
	return r.commit(wal)
}

func (r *recording) commit(wal walRange) (Result, error) {
	archive, archiveSize, err := r.archive.blob.blob.Commit()
	if err != nil {
		return Result{}, err
	}
	manifest, manifestSize, err := r.manifest.blob.blob.Commit()
	if err != nil {
		return Result{}, errors.Join(err, r.store.Remove(archive))
	}
	r.progress.finish()
	return Result{
		Format: resultFormat, Compression: compression,
		Archive: archive, ArchiveBLAKE3: r.archive.blob.digest(),
		Manifest: manifest, ManifestBLAKE3: r.manifest.blob.digest(),
		SizeBytes: r.progress.done, StoredBytes: archiveSize + manifestSize,
		Timeline: wal.timeline, StartLSN: wal.start.String(), StopLSN: wal.stop.String(),
	}, nil
}

// abort leaves no blobs, at any time before the commit.
func (r *recording) abort() error { return errors.Join(r.manifest.abort(), r.archive.abort()) }
