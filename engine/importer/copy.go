package importer

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"holdfast/engine/model"
)

// Job is what Copy needs to know beside the source.
type Job struct {
	Owner     string // the role that owns the new database
	Target    Target
	PgDump    string   // the program, at least as new as the source
	PgDumpEnv []string // the variables it needs to run at all
	// DumpMemory is how much memory the program may take, in bytes; 0 for any.
	DumpMemory int64
	SocketDir  string // a private directory for sockets alone, with a short path
}

// copying is a job while it runs.
type copying struct {
	*Session
	Job
	entries []entry
	roles   *roleMap
	workers []*worker

	mu       sync.Mutex
	failed   map[int]bool     // ids of entries that were refused or left out
	rows     map[uint32]int64 // how many were copied, by the table's oid, or told
	rerouted []reroutedPartition
}

// told stands for the rows of a table that were not copied, which is a flaw
// the account has.
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

// jobs is how many steps run at a time. On the smallest machines one copy
// keeps two processors busy at both ends.
func jobs() int { return max(2, min(runtime.NumCPU(), 8)) }

// Copy copies the source, as of the snapshot that Check has begun, into the
// target, and verifies it. Flaws are told to the account; an error means that
// the copy cannot be used.
func (s *Session) Copy(ctx context.Context, job Job) error {
	job.Target = job.Target.bounded
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
			return s.trouble(ctx, err)
		}
		s.account.Say(model.ImportInfo, fmt.Sprintf("%s %s: %.1f s", phase.status, phase.name, s.account.clock().Sub(began).Seconds()))
	}
	return nil
}
