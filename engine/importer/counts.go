package importer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// counting compares the numbers of rows of both sides.
type counting struct {
	mu      sync.Mutex
	left    []countedTables
	counted int
	differ  []string
	skipped []string
}

// countedTables are a table, or partitions that are counted together.
type countedTables []table

func (g countedTables) heap() (bytes float64) {
	for _, t := range g {
		bytes += t.heap
	}
	return bytes
}

func (g countedTables) String() string {
	if len(g) == 1 {
		return g[0].String()
	}
	return fmt.Sprintf("%s with the other partitions of its root", g[0])
}

// newCounting returns what is to be counted, the smallest first.
func newCounting(tables []table) *counting {
	n := &counting{}
	roots := map[uint32]int{}
	for _, t := range tables {
		if !t.published || !t.counted || t.columns == "" {
			continue
		}
		at, ok := roots[t.together]
		if t.together == 0 || !ok {
			roots[t.together] = len(n.left)
			n.left = append(n.left, countedTables{t})
			continue
		}
		n.left[at] = append(n.left[at], t)
	}
	slices.SortStableFunc(n.left, func(a, b countedTables) int { return cmp.Compare(a.heap(), b.heap()) })
	return n
}

// next takes what is not counted yet.
func (n *counting) next() (g countedTables, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.left) == 0 {
		return nil, false
	}
	g, n.left = n.left[0], n.left[1:]
	return g, true
}

func (n *counting) done(g countedTables, source, target int64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		n.skipped = append(n.skipped, g.String())
	case source != target:
		n.differ = append(n.differ, fmt.Sprintf("%s has %d there and %d here", g, source, target))
	default:
		n.counted += len(g)
	}
}

// compareCounts counts the rows of the followed tables on both sides, for as long as patience lasts. It fails if they
// differ, and logs which tables it could not count in time.
func (c *copying) compareCounts(ctx context.Context, patience time.Duration) error {
	n := newCounting(c.inventory.tables)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all sync.WaitGroup
	for _, w := range c.workers {
		all.Go(func() { c.count(ctx, n, w) })
	}
	all.Wait()
	for _, g := range n.left {
		n.skipped = append(n.skipped, g.String())
	}
	if len(n.differ) > 0 {
		return model.Errorf(model.CodeConflict, "the numbers of rows differ, so somebody still writes at the source, or has written here: %s; stop every writer and cut over again",
			oneLine(strings.Join(n.differ[:min(len(n.differ), 5)], ", ")))
	}
	c.account.Say(model.ImportInfo, fmt.Sprintf("the rows of %s are the same in number on both sides", model.Count(n.counted, "table")))
	if len(n.skipped) > 0 {
		c.account.Say(model.ImportWarning, fmt.Sprintf("%s not counted within %v: %s", model.Count(len(n.skipped), "table"), patience, few(n.skipped)))
	}
	return nil
}

// count counts tables until there are no more or the time is over.
func (c *copying) count(ctx context.Context, n *counting, w *worker) {
	target, err := w.writer(ctx)
	if err != nil {
		return
	}
	source, err := c.another(ctx, c.enterNow)
	if err != nil {
		return
	}
	defer source.Close(context.WithoutCancel(ctx))
	for g, ok := n.next(); ok; g, ok = n.next() {
		there, here, err := countBoth(ctx, source, target, g)
		n.done(g, there, here, err)
		if err != nil {
			if source.IsClosed() || target.IsClosed() || c.enterAgain(ctx, source) != nil {
				return
			}
		}
	}
}

func countBoth(ctx context.Context, source, target *pgx.Conn, g countedTables) (there, here int64, err error) {
	for _, t := range g {
		rows, err := countAt(ctx, source, t)
		if err != nil {
			return 0, 0, err
		}
		there += rows
		if err := target.QueryRow(ctx, "select count(*) from only "+t.sanitized()).Scan(&rows); err != nil {
			return 0, 0, err
		}
		here += rows
	}
	return there, here, nil
}

// enterAgain begins another transaction after one that an error has aborted.
func (c *copying) enterAgain(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		return err
	}
	return c.enterNow(ctx, conn)
}

// countAt counts a table's rows at the source. It has them sent, one column of each: a query over the table could run its
// owner's code (DESIGN.md, "The source's users").
func countAt(ctx context.Context, source *pgx.Conn, t table) (int64, error) {
	if err := lockNamed(ctx, source, t); err != nil {
		return 0, err
	}
	expect(source, copyBounds)
	defer expect(source, catalogBounds)
	tag, err := source.PgConn().CopyTo(ctx, io.Discard, "copy "+t.sanitized()+" ("+t.columns+") to stdout")
	return tag.RowsAffected(), err
}
