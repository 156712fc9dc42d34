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
	left    []table
	counted int
	differ  []string
	skipped []string
}

// next takes a table that is not counted yet, the smallest first.
func (n *counting) next() (t table, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.left) == 0 {
		return t, false
	}
	t, n.left = n.left[0], n.left[1:]
	return t, true
}

func (n *counting) done(t table, source, target int64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		n.skipped = append(n.skipped, t.String())
	case source != target:
		n.differ = append(n.differ, fmt.Sprintf("%s has %d there and %d here", t, source, target))
	default:
		n.counted++
	}
}

// compareCounts counts the rows of the followed tables on both sides, for as long as patience lasts. It fails if they
// differ, and logs which tables it could not count in time.
func (c *copying) compareCounts(ctx context.Context, patience time.Duration) error {
	n := &counting{}
	for _, t := range c.inventory.tables {
		if t.published && t.counted && t.columns != "" {
			n.left = append(n.left, t)
		}
	}
	slices.SortStableFunc(n.left, func(a, b table) int { return cmp.Compare(a.heap, b.heap) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all sync.WaitGroup
	for _, w := range c.workers {
		all.Go(func() { c.count(ctx, n, w) })
	}
	all.Wait()
	for _, t := range n.left {
		n.skipped = append(n.skipped, t.String())
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
	for t, ok := n.next(); ok; t, ok = n.next() {
		there, err := countAt(ctx, source, t)
		var here int64
		if err == nil {
			err = target.QueryRow(ctx, "select count(*) from only "+t.sanitized()).Scan(&here)
		}
		n.done(t, there, here, err)
		if err != nil {
			if source.IsClosed() || target.IsClosed() || c.enterAgain(ctx, source) != nil {
				return
			}
		}
	}
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
