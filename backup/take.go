package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/blobstore"
)

// Options of Take.
type Options struct {
	// Label is what the server notes in the backup, at most 1000 bytes.
	Label string

	// Progress, if set, is called for every MiB, and at the end, with the bytes
	// received and the server's estimate of how many there will be. The backup
	// waits for it.
	Progress func(doneBytes, totalBytes int64)
}

// abandonWait bounds how long the end of a failed backup takes.
const abandonWait = 5 * time.Second

// Take makes a backup of the server that conn leads to into store. The server
// goes on working meanwhile.
//
// conn is a connection in replication mode, of a role that may replicate, to
// PostgreSQL 15 or newer with a free replication slot; nobody else uses it
// meanwhile. The caller closes it. After an error it is closed already, so that
// the server stops sending; a retry needs a new one. Everything may be retried:
// a Take that fails or whose ctx ends leaves no blobs.
//
// A page whose checksum the server finds wrong is an error that says which. Of
// a cluster with tablespaces no backup is made.
func Take(ctx context.Context, conn *pgconn.PgConn, store *blobstore.Store, opts Options) (Result, error) {
	result, err := take(ctx, conn, store, opts)
	if err != nil {
		abandon(conn)
		return Result{}, fmt.Errorf("take base backup: %w", err)
	}
	return result, nil
}

func take(ctx context.Context, conn *pgconn.PgConn, store *blobstore.Store, opts Options) (Result, error) {
	command, err := baseBackupCommand(opts.Label)
	if err != nil {
		return Result{}, err
	}
	version, err := serverVersion(conn)
	if err != nil {
		return Result{}, err
	}
	slot, err := reserveWAL(ctx, conn)
	if err != nil {
		return Result{}, err
	}
	rec, err := newRecording(ctx, store, &progress{tell: opts.Progress})
	if err != nil {
		return Result{}, err
	}
	result, err := rec.run(ctx, conn, command, slot)
	if err != nil {
		return Result{}, errors.Join(err, rec.abort())
	}
	result.PostgresVersion = version
	return result, nil
}

// abandon ends conn, whatever the server is sending. Closing alone would leave
// it waiting in a send until that fails.
func abandon(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), abandonWait)
	defer cancel()
	if !conn.IsClosed() {
		conn.CancelRequest(ctx) // only to be quicker; the close below decides
		conn.Close(ctx)
	}
	<-conn.CleanupDone()
}
