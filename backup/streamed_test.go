package backup

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
)

// streamed is the real WAL archive of a test's server.
type streamed struct {
	*wal.Receiver
	away *atomic.Bool // the receiver cannot reach the server
}

// ChangedPages implements WAL.
func (s streamed) ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (Changes, error) {
	changes, err := s.Receiver.ChangedPages(ctx, timeline, from, to)
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// newStreamed receives the server's WAL until the test ends.
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
	away := &atomic.Bool{}
	receiver, err := wal.OpenReceiver(wal.ReceiverOptions{
		Archive: archive, Generation: 1, Slot: "streamed", Dir: filepath.Join(c.Dir, "pg_wal"),
		SQL: func(ctx context.Context) (*pgx.Conn, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return pgx.Connect(ctx, c.url("postgres")+" application_name=receiver")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	return streamed{receiver, away}
}

// loseWAL disconnects the receiver until the server has removed WAL that it did not receive.
func (s streamed) loseWAL(c *cluster) {
	c.t.Helper()
	c.query("alter system set max_slot_wal_keep_size = '16MB'")
	c.query("select pg_reload_conf()")
	s.away.Store(true)
	defer s.away.Store(false)
	c.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'receiver'")
	for c.query("select wal_status from pg_replication_slots where slot_name = 'streamed'") != "lost" {
		c.query("select pg_logical_emit_message(false, 'holdfast', 'more')")
		c.query("select pg_switch_wal()")
		c.query("checkpoint")
	}
}

// TestWALIsLost: a backup during which WAL is lost fails, although the archive continues after the gap.
func TestWALIsLost(t *testing.T) {
	c := newCluster(t)
	archive := newStreamed(t, c)
	repo, dir := openRepository(t)
	var once sync.Once
	_, err := Take(t.Context(), c.Connect(), repo, archive, Options{ID: "b", Progress: func(int64, int64) {
		once.Do(func() { archive.loseWAL(c) })
	}})
	if !errors.Is(err, wal.ErrGap) || !strings.Contains(err.Error(), "the backup needs all WAL from") {
		t.Errorf("error %v", err)
	}
	mustHoldNothing(t, dir)
	if _, err := Take(t.Context(), c.Connect(), repo, archive, Options{ID: "b"}); err != nil {
		t.Errorf("behind the gap: %v", err)
	}
}
