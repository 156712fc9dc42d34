package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// commit is a writer's record of one of its transactions.
type commit struct{ sent, answered time.Time }

// writers are four writers that number their commits, while other work runs beside them.
type writers struct {
	stop func()

	mu      sync.Mutex
	commits map[int]commit
}

func startWriters(t testing.TB, c *cluster) *writers {
	t.Helper()
	c.do("create table if not exists numbers (n int primary key, x text, filler text)")
	ctx, cancel := context.WithCancel(t.Context())
	w := &writers{commits: map[int]commit{}}
	var wg sync.WaitGroup
	for client := range 4 {
		conn := c.Connect()
		wg.Go(func() {
			for n := client; ctx.Err() == nil; n += 4 {
				w.write(t, conn, n)
			}
		})
	}
	w.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(w.stop)
	return w
}

// write commits n. Some transactions take a while, are rolled back, write a lot, or are prepared before they are
// committed.
func (w *writers) write(t testing.TB, conn *pgx.Conn, n int) {
	ctx := context.Background()
	insert := fmt.Sprintf("insert into numbers select %d, pg_current_xact_id()::text, repeat('x', %d)", n, 1+n%13*300)
	var sql []string
	switch n % 11 {
	case 0:
		sql = []string{"begin", insert, fmt.Sprintf("prepare transaction 'n%d'", n), fmt.Sprintf("commit prepared 'n%d'", n)}
	case 1:
		sql = []string{"begin", "insert into numbers values (-1)", "rollback", insert}
	case 2:
		sql = []string{"begin", insert, fmt.Sprintf("update numbers set filler = filler where n %% 4 = %d and n < 40", n%4), "select pg_sleep(0.002)", "commit"}
	default:
		sql = []string{insert}
	}
	c := commit{sent: time.Now()}
	for _, statement := range sql {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Errorf("%s: %v", statement, err)
			return
		}
	}
	c.answered = time.Now()
	w.mu.Lock()
	w.commits[n] = c
	w.mu.Unlock()
}

// judge compares the rows of a restored server with the writers' records, for a target between two times.
func (w *writers) judge(t testing.TB, c *cluster, target time.Time) (rows int) {
	t.Helper()
	there := map[int]bool{}
	for _, text := range strings.Fields(c.ask("select coalesce(string_agg(n::text, ' '), '') from numbers")) {
		n, _ := strconv.Atoi(text)
		there[n] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, commit := range w.commits {
		if commit.answered.Before(target) && !there[n] {
			t.Errorf("%d was committed %v before the target, and is missing", n, target.Sub(commit.answered))
		}
		if commit.sent.After(target) && there[n] {
			t.Errorf("%d was begun %v after the target, and is there", n, commit.sent.Sub(target))
		}
	}
	return len(there)
}

// judgeTargets resolves many random times and positions, and compares what would be replayed with the writers'
// records, to the record.
func (w *writers) judgeTargets(t testing.TB, c *cluster, a *Archive, b baseBackup, xids map[string]xlog.LSN, first, last time.Time, end xlog.LSN) {
	t.Helper()
	ends := map[int]xlog.LSN{} // of the commits after the backup's start, by number
	for _, row := range strings.Fields(c.ask("select string_agg(n || ':' || x, ' ') from numbers")) {
		text, xid, _ := strings.Cut(row, ":")
		if n, err := strconv.Atoi(text); err == nil && xids[xid] > b.stop {
			ends[n] = xids[xid]
		}
	}
	if len(ends) < 100 {
		t.Errorf("only %d commits are known", len(ends))
	}
	for range 200 {
		target := Target{Generation: 1, Since: b.start, Time: first.Add(rand.N(last.Sub(first)))}
		if rand.IntN(2) == 0 {
			target.Time, target.LSN = time.Time{}, b.stop+rand.N(end-b.stop)
		}
		r, err := a.Resolve(t.Context(), target)
		if err != nil {
			t.Fatalf("%+v: %v", target, err)
		}
		reach, err := r.Reach(b.stop)
		if err != nil {
			t.Fatalf("%+v: %v", target, err)
		}
		for n, end := range ends {
			commit, there := w.commits[n], end <= reach.End
			switch {
			case target.LSN != 0 && there != (end <= target.LSN):
				t.Errorf("target %v: the commit that ends at %v is there: %t", target.LSN, end, there)
			case target.LSN == 0 && commit.answered.Before(target.Time) && !there:
				t.Errorf("%d was committed %v before the target, and would be missing", n, target.Time.Sub(commit.answered))
			case target.LSN == 0 && commit.sent.After(target.Time) && there:
				t.Errorf("%d was begun %v after the target, and would be there", n, commit.sent.Sub(target.Time))
			}
		}
	}
}
