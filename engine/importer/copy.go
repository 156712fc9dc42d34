package importer

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"holdfast/engine/model"
)

// Job is what Copy needs besides the source.
type Job struct {
	Owner     string // the role that owns the new database
	Target    Target
	PgDump    string   // the program, at least as new as the source's server
	PgDumpEnv []string // the variables that it requires
	// DumpMemory is the most memory the program may take, in bytes; 0 for no limit.
	DumpMemory int64
	SocketDir  string // a private directory used only for sockets, with a short path
}

// copying is a running Job.
type copying struct {
	*Session
	Job
	entries []entry
	roles   *roleMap
	workers []*worker

	mu       sync.Mutex
	failed   map[int]bool     // ids of entries that were refused or left out
	rows     map[uint32]int64 // rows copied, by the table's oid, or told
	rerouted []reroutedPartition
}

// told marks a table whose rows were not copied; the account has the flaw.
const told = -1

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

// jobs is how many steps run at a time. On the smallest machines one copy keeps two processors busy, one at each end.
func jobs() int { return max(2, min(runtime.NumCPU(), 8)) }

// phase is a part of a copy, for display.
type phase struct {
	status model.ImportStatus
	name   string
	do     func(context.Context) error
}

// Copy copies the source, as of Check's snapshot, into the target, and verifies the copy. The account receives the
// flaws; after an error the copy cannot be used.
func (s *Session) Copy(ctx context.Context, job Job) error {
	c := s.newCopy(job)
	defer c.close(ctx)
	return c.perform(ctx, append(c.rowPhases(),
		phase{model.ImportVerifying, "row security and views", c.finish},
		phase{model.ImportVerifying, "objects", c.verifyObjects},
	))
}

// CopyToFollow is Copy without what must not come before the cutover, which the plan has: row security and privileges, which
// may keep the owner from applying changes, triggers' firing for replicated changes, and materialized views that cannot be
// filled without row security.
func (s *Session) CopyToFollow(ctx context.Context, job Job) (Plan, error) {
	c := s.newCopy(job)
	defer c.close(ctx)
	var plan Plan
	err := c.perform(ctx, append(c.rowPhases(),
		phase{model.ImportVerifying, "partitions", c.checkRerouted},
		phase{model.ImportVerifying, "statistics", c.analyze},
		phase{model.ImportVerifying, "materialized views", c.fillFollowed},
		phase{model.ImportVerifying, "objects", c.verifyObjects},
		phase{model.ImportVerifying, "what is left for the cutover", func(ctx context.Context) (err error) {
			plan, err = c.planCutover(ctx)
			return err
		}},
	))
	return plan, err
}

func (s *Session) newCopy(job Job) *copying {
	job.Target = job.Target.bounded
	c := &copying{
		Session: s, Job: job, roles: newRoleMap(job.Owner),
		failed: map[int]bool{}, rows: map[uint32]int64{},
	}
	for range jobs() {
		c.workers = append(c.workers, &worker{session: s, open: job.Target})
	}
	return c
}

func (c *copying) close(ctx context.Context) {
	for _, w := range c.workers {
		w.close(context.WithoutCancel(ctx))
	}
}

// rowPhases are the phases of every copy: they end with all rows, indexes, keys and triggers.
func (c *copying) rowPhases() []phase {
	return []phase{
		{model.ImportCopying, "schema", c.copySchema},
		{model.ImportCopying, "data and indexes", c.copyData},
		{model.ImportVerifying, "rows", c.verifyRows},
	}
}

func (c *copying) perform(ctx context.Context, phases []phase) error {
	for _, phase := range phases {
		c.account.Enter(phase.status, phase.name)
		began := c.account.clock()
		if err := phase.do(ctx); err != nil {
			return c.trouble(ctx, err)
		}
		c.account.Say(model.ImportInfo, fmt.Sprintf("%s %s: %.1f s", phase.status, phase.name, c.account.clock().Sub(began).Seconds()))
	}
	return nil
}
