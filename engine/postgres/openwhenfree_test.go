package postgres

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// countedConn counts how often it is closed.
type countedConn struct{ closed int }

func (c *countedConn) Close(context.Context) error { c.closed++; return nil }

// A session that was opened is closed when the rules of before the lockout cannot be restored, because its caller gets an error.
func TestOpenWhenFreeClosesAtAnError(t *testing.T) {
	t.Parallel()
	server := exec.Command("sleep", "60")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Process.Kill(), server.Wait() })
	w, err := newWatch(server.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	begin := func() (*lockout, error) { // without the rules to restore
		return &lockout{dir: t.TempDir(), p: &process{pid: w.pid, watch: w}, refused: map[string]bool{}, seen: map[int]time.Time{}}, nil
	}
	began, opened := time.Now(), &countedConn{}
	conn, err := openWhenFree(t.Context(), begin, func() (*countedConn, error) {
		if time.Since(began) < lockoutAfter+200*time.Millisecond {
			return nil, &pgconn.PgError{Code: sqlstateFull}
		}
		return opened, nil
	})
	if err == nil || errors.Is(err, context.Canceled) || conn != nil || opened.closed != 1 {
		t.Errorf("conn %v, closed %d times, %v", conn, opened.closed, err)
	}
}
