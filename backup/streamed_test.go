package backup

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/backup/wal"
)

// streamed is the real WAL archive of a test's server.
type streamed struct{ *wal.Receiver }

// ChangedPages implements WAL.
func (s streamed) ChangedPages(ctx context.Context, timeline uint32, from, to wal.LSN) (Changes, error) {
	changes, err := s.Receiver.ChangedPages(ctx, timeline, from, to)
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// newStreamed begins to receive the server's WAL, until the test ends.
func newStreamed(t testing.TB, c *cluster) streamed {
	t.Helper()
	archive, err := wal.Open(filepath.Join(t.TempDir(), "wal"), wal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { archive.Close() })
	if err := archive.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	receiver, err := wal.OpenReceiver(wal.ReceiverOptions{
		Archive: archive, Incarnation: 1, Slot: "streamed",
		Replication: func(ctx context.Context) (*pgconn.PgConn, error) {
			return pgconn.Connect(ctx, c.url("postgres")+" replication=yes")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	return streamed{receiver}
}
