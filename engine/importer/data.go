package importer

import (
	"context"
	"errors"
	"slices"

	"holdfast/engine/model"
)

// copyData copies the rows and creates what depends on them.
func (c *copying) copyData(ctx context.Context) error {
	if err := c.readSequences(ctx); err != nil {
		return err
	}
	if err := c.logMemberRows(ctx); err != nil {
		return err
	}
	if err := c.logLeftovers(ctx); err != nil {
		return err
	}
	data := c.dataSteps()
	if len(data) == 0 && len(c.inventory.tables) > 0 {
		return model.Errorf(model.CodeValidation, "none of the source's tables could be made here: %s", c.account.Snapshot().Errors[0].Message)
	}
	index, rest := c.entrySteps(data)
	if c.inventory.largeObjects > 0 {
		data = append(data, &step{name: "LARGE OBJECTS", weight: float64(c.inventory.largeObjects) * largeObjectWeight, do: c.copyLargeObjects})
	}
	c.account.change(func(record *model.Import) { record.TablesTotal = len(c.inventory.tables) })
	work := append(data, index...)
	c.account.plan(weigh(work))
	if err := c.holding(ctx, func(ctx context.Context) error {
		if err := c.run(ctx, work); err != nil {
			return err
		}
		return c.run(ctx, c.reroutedSteps())
	}); err != nil {
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
	r := newRunner(steps)
	r.flawed = func(s *step, err error) { c.account.flaw(s.name, err) }
	r.finished = func(s *step) { c.account.addDone(s.weight) }
	return r.run(ctx, c.workers)
}

// dataSteps returns the copies of the tables that could be created.
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
			c.setRows(t, told)
			c.account.flaw("TABLE DATA "+t.String(), errors.New("the rows are not copied: the table could not be made"))
			continue
		}
		weight := t.heap + 1
		steps = append(steps, &step{name: "TABLE DATA " + t.String(), weight: weight, table: id, do: func(ctx context.Context, w *worker) error {
			return c.copyTable(ctx, w, &transfer{table: t, weight: weight})
		}})
	}
	return steps
}

func (c *copying) copyTable(ctx context.Context, w *worker, t *transfer) error {
	source, target, err := w.ends(ctx)
	if err != nil {
		return err
	}
	c.account.start(t)
	rows, err := t.flow(ctx, source, target)
	c.account.finish(t, err == nil)
	if t.root == nil && isMisplaced(err) {
		root, lookErr := rootOf(ctx, target, t.table)
		if root != nil {
			c.reroute(reroutedPartition{t.table, root})
			return nil
		}
		err = errors.Join(err, lookErr)
	}
	if err != nil {
		c.setRows(t.table, told)
		return err
	}
	c.setRows(t.table, rows)
	c.account.change(func(record *model.Import) { record.TablesDone++ })
	return nil
}

// entrySteps returns the steps of the entries that come after the data: index needs only the rows of its own table,
// rest needs all rows. Entries that would hide rows or forbid reading them come last (finish.go).
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

// isLast reports whether an entry is created after the rows are verified.
func isLast(e entry) bool {
	return e.desc == enableTrigger || e.desc == "ROW SECURITY" || e.desc == "ACL" || e.desc == "DEFAULT ACL"
}

// indexShares returns the weight of each index of a table, by the table's entry.
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
