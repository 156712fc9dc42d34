package importer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"holdfast/engine/model"
)

// Job is what Copy needs to know beside the source.
type Job struct {
	Owner     string // the role that owns the new database
	Target    Target
	PgDump    string // the program, at least as new as the source
	SocketDir string // a private directory for sockets alone, with a short path
}

// copying is a job while it runs.
type copying struct {
	*Session
	Job
	entries []entry
	roles   *roleMap
	workers []*worker

	mu     sync.Mutex
	failed map[int]bool     // ids of entries that were refused or left out
	rows   map[uint32]int64 // how many were copied, by the table's oid
}

func (c *copying) setFailed(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[id] = true
}

func (c *copying) hasFailed(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed[id]
}

func (c *copying) setRows(t table, rows int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows[t.oid] = rows
}

// jobs is how many steps run at a time. On the smallest machines one copy
// keeps two processors busy at both ends.
func jobs() int { return max(2, min(runtime.NumCPU(), 8)) }

// Copy copies the source, as of the snapshot that Check has begun, into the
// target, and verifies it. Flaws are told to the account; an error means that
// the copy cannot be used.
func (s *Session) Copy(ctx context.Context, job Job) error {
	c := &copying{
		Session: s, Job: job, roles: newRoleMap(job.Owner),
		failed: map[int]bool{}, rows: map[uint32]int64{},
	}
	for range jobs() {
		c.workers = append(c.workers, &worker{session: s, open: job.Target})
	}
	defer func() {
		for _, w := range c.workers {
			w.close(context.WithoutCancel(ctx))
		}
	}()
	for _, phase := range []struct {
		status model.ImportStatus
		name   string
		do     func(context.Context) error
	}{
		{model.ImportCopying, "schema", c.copySchema},
		{model.ImportCopying, "data and indexes", c.copyData},
		{model.ImportVerifying, "rows", c.verifyRows},
		{model.ImportVerifying, "row security and views", c.finish},
		{model.ImportVerifying, "objects", c.verifyObjects},
	} {
		s.account.Enter(phase.status, phase.name)
		began := s.account.clock()
		if err := phase.do(ctx); err != nil {
			return trouble(ctx, err)
		}
		s.account.Say(model.ImportInfo, fmt.Sprintf("%s %s: %.1f s", phase.status, phase.name, s.account.clock().Sub(began).Seconds()))
	}
	return nil
}

// copySchema makes everything that rows need to be put into.
func (c *copying) copySchema(ctx context.Context) error {
	if err := c.hold(ctx, c.inventory.tables); err != nil {
		return sourceError{err}
	}
	conn, err := c.source.connect(ctx)
	if err != nil {
		return err
	}
	entries, err := dumpSchema(ctx, c.PgDump, c.SocketDir, c.snapshot, conn.PgConn())
	if err != nil {
		return err
	}
	c.account.Say(model.ImportInfo, fmt.Sprintf("pg_dump has described %d objects", len(entries)))
	c.entries = c.choose(entries)
	for _, e := range c.entries {
		if e.section != sectionPreData {
			continue
		}
		if err := c.make(ctx, c.workers[0], e); err != nil {
			if fatal(err) {
				return err
			}
			c.account.flaw(e.name(), err)
		}
	}
	return nil
}

// choose returns the entries that are to be made, with the roles of here in
// their definitions, and says what is left out. Large objects are copied
// without pg_dump.
func (c *copying) choose(entries []entry) []entry {
	var chosen []entry
	for _, e := range entries {
		switch {
		case e.desc == "EVENT TRIGGER":
			c.setFailed(e.id)
			c.account.Say(model.ImportWarning, e.name()+" is left out: event triggers need a superuser, which the owner of a database is not here")
		case e.desc == "EXTENSION" && slices.Contains(c.missing, e.tag):
			c.setFailed(e.id)
			c.account.flaw(e.name(), errors.New("the extension is not available to owners of databases here"))
		case e.desc == "FOREIGN DATA WRAPPER", e.desc == "SERVER", e.desc == "USER MAPPING":
			// Not even tried: their passwords would be in the server's log.
			c.setFailed(e.id)
			c.account.flaw(e.name(), errors.New("foreign servers need a superuser, which the owner of a database is not here"))
		case e.desc == "SUBSCRIPTION", e.desc == "DATABASE", e.desc == "DATABASE PROPERTIES", strings.HasPrefix(e.desc, "BLOB"):
			c.setFailed(e.id)
		default:
			e.definition = c.roles.definition(e)
			chosen = append(chosen, e)
		}
	}
	for _, role := range c.roles.others(c.roles.lost) {
		c.account.Say(model.ImportWarning, fmt.Sprintf("the role %q of the source is not here: %d grants to it are left out", role, c.roles.lost[role]))
	}
	for _, role := range c.roles.others(c.roles.turned) {
		c.account.Say(model.ImportWarning, fmt.Sprintf("the role %q of the source is not here: %d policies for it are now for %s", role, c.roles.turned[role], c.Owner))
	}
	return chosen
}

// make executes an entry's definition. A remark about what was not made is
// left out with it.
func (c *copying) make(ctx context.Context, w *worker, e entry) error {
	remark := e.desc == "COMMENT" || e.desc == "ACL"
	if strings.TrimSpace(e.definition) == "" || remark && slices.ContainsFunc(e.needs, c.hasFailed) {
		return nil
	}
	err := w.execute(ctx, e.definition)
	if err != nil {
		c.setFailed(e.id)
	}
	return err
}

// copyData copies the rows and makes what is made when they are there.
func (c *copying) copyData(ctx context.Context) error {
	if err := readSequences(ctx, c.conn, c.inventory.sequences); err != nil {
		return sourceError{err}
	}
	data := c.dataSteps()
	index, rest := c.entrySteps(data)
	if c.inventory.largeObjects > 0 {
		data = append(data, &step{name: "LARGE OBJECTS", weight: float64(c.inventory.largeObjects) * largeObjectWeight, do: c.copyLargeObjects})
	}
	c.account.change(func(record *model.Import) { record.TablesTotal = len(c.inventory.tables) })
	work := append(data, index...)
	c.account.plan(weigh(work))
	if err := c.run(ctx, work); err != nil {
		return err
	}
	if err := c.setSequences(ctx); err != nil {
		return err
	}
	return c.run(ctx, rest)
}

func weigh(steps []*step) (total float64) {
	for _, s := range steps {
		total += s.weight
	}
	return total
}

func (c *copying) run(ctx context.Context, steps []*step) error {
	r := newErrand(steps)
	r.flawed = func(s *step, err error) { c.account.flaw(s.name, err) }
	r.finished = func(s *step) { c.account.achieve(s.weight) }
	return r.run(ctx, c.workers)
}

// dataSteps are the copies of the tables that could be made.
func (c *copying) dataSteps() []*step {
	made := map[uint32]int{}
	for _, e := range c.entries {
		if e.desc == "TABLE" && !c.hasFailed(e.id) {
			made[e.oid] = e.id
		}
	}
	var steps []*step
	for _, t := range c.inventory.tables {
		id, ok := made[t.oid]
		if !ok {
			c.account.Say(model.ImportError, "the rows of "+t.String()+" are not copied: the table could not be made")
			continue
		}
		weight := t.heap + 1
		steps = append(steps, &step{name: "TABLE DATA " + t.String(), weight: weight, table: id, do: func(ctx context.Context, w *worker) error {
			return c.copyTable(ctx, w, t, weight)
		}})
	}
	return steps
}

func (c *copying) copyTable(ctx context.Context, w *worker, t table, weight float64) error {
	source, target, err := w.ends(ctx)
	if err != nil {
		return err
	}
	transfer := &transfer{table: t, weight: weight}
	c.account.start(transfer)
	rows, err := transfer.flow(ctx, source, target)
	c.account.finish(transfer, err == nil)
	if err != nil {
		return err
	}
	c.setRows(t, rows)
	c.account.change(func(record *model.Import) { record.TablesDone++ })
	return nil
}

// entrySteps makes steps of the entries that come after the data: index are
// those that need the rows of their own table only, rest what needs all. What
// would hide rows or forbid reading them comes last (finish.go).
func (c *copying) entrySteps(data []*step) (index, rest []*step) {
	rows := map[int]*step{} // by the table's entry
	for _, s := range data {
		rows[s.table] = s
	}
	early, late := map[int]*step{}, map[int]*step{}
	shares := c.indexShares()
	for _, e := range c.entries {
		if e.section == sectionPreData || isLast(e) {
			continue
		}
		s := &step{name: e.name(), do: func(ctx context.Context, w *worker) error { return c.make(ctx, w, e) }}
		for _, id := range e.needs {
			if first := early[id]; first != nil {
				s.needs = append(s.needs, first)
			}
			if first := rows[id]; first != nil {
				s.needs, s.table, s.weight = append(s.needs, first), id, shares[id]
			}
		}
		if isIndex(e) && !slices.ContainsFunc(e.needs, func(id int) bool { return late[id] != nil }) {
			s.shared = e.desc != "CONSTRAINT"
			index, early[e.id] = append(index, s), s
			continue
		}
		for _, id := range e.needs {
			if first := late[id]; first != nil {
				s.needs = append(s.needs, first)
			}
		}
		s.weight = 0
		rest, late[e.id] = append(rest, s), s
	}
	return index, rest
}

func isIndex(e entry) bool {
	return e.desc == "INDEX" || e.desc == "CONSTRAINT" || e.desc == "INDEX ATTACH"
}

// isLast reports whether an entry is made after the rows are verified.
func isLast(e entry) bool {
	return e.desc == "ROW SECURITY" || e.desc == "ACL" || e.desc == "DEFAULT ACL"
}

// indexShares is what each index of a table weighs, by the table's entry.
func (c *copying) indexShares() map[int]float64 {
	table, count := map[uint32]int{}, map[int]float64{}
	for _, e := range c.entries {
		switch e.desc {
		case "TABLE":
			table[e.oid] = e.id
		case "INDEX", "CONSTRAINT":
			for _, id := range e.needs {
				count[id]++
			}
		}
	}
	shares := map[int]float64{}
	for _, t := range c.inventory.tables {
		if id := table[t.oid]; count[id] > 0 {
			shares[id] = (t.all - t.heap) / count[id]
		}
	}
	return shares
}

// setSequences puts the sequences where the source's are.
func (c *copying) setSequences(ctx context.Context) error {
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return err
	}
	for _, q := range c.inventory.sequences {
		_, err := target.Exec(ctx, "select setval($1::regclass, $2, $3)", q.sanitized(), q.last, q.called)
		if err != nil && fatal(err) {
			return err
		}
		if err != nil {
			c.account.flaw("SEQUENCE SET "+q.schema+"."+q.name, err)
		}
	}
	return nil
}
