package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/engine/recovery"
	"holdfast/internal/objectstore"
)

// secondPhase brings back what the first phase of a recovery left in the store, while the
// appliance serves: the files of each database's backups, for its rebuild, then those
// of databases in the trash, then large objects.
type secondPhase struct {
	core     *core.Core
	objects  *objects.Service
	recovery *recovery.Service
	store    *planStore
	reader   func(context.Context) (*connection, error) // of the store; it stays open

	fetched chan struct{} // closed once the files of all databases are here

	mu    sync.Mutex
	turns map[string]*sync.Mutex // held by the one Fetch of a database
}

// openSecondPhase returns the rest of the recovery into a data directory, nil if there is none.
func openSecondPhase(c *core.Core, o *objects.Service, r *recovery.Service, store *planStore, reader func(context.Context) (*connection, error)) (*secondPhase, error) {
	if store == nil || store.get().isOver() {
		return nil, nil //nolint:nilnil // nothing is left to do
	}
	s := &secondPhase{core: c, objects: o, recovery: r, store: store, reader: reader, fetched: make(chan struct{}), turns: map[string]*sync.Mutex{}}
	if err := s.reconcile(); err != nil {
		return nil, err
	}
	r.Connect(s)
	return s, nil
}

// reconcile compares the plan with the records: a database that was rebuilt before the
// plan said so, or was deleted since, is done.
func (s *secondPhase) reconcile() error {
	records, err := recordsOf(s.core, s.store.get().Report)
	if err != nil {
		return err
	}
	var gone []string
	err = s.store.change(func(p *recoveryPlan) {
		for i := range p.Report.Databases {
			d := &p.Report.Databases[i]
			if d.follow(records[d.ID]); records[d.ID] == nil {
				gone = append(gone, d.ID)
			}
		}
	})
	for _, id := range gone {
		err = errors.Join(err, removeFetchList(s.core.Config.DataDir, id))
	}
	s.noteFetched()
	return err
}

// recordsOf returns the records of a report's databases; those that were deleted for good have none.
func recordsOf(c *core.Core, r RecoveryReport) (map[string]*model.Database, error) {
	records := map[string]*model.Database{}
	err := c.Meta.View(func(tx *meta.Tx) error {
		for _, d := range r.Databases {
			record, err := tx.Databases().Get(d.ID)
			if errors.Is(err, meta.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			records[d.ID] = &record
		}
		return nil
	})
	return records, err
}

// checkpointSlack is how long before its time a checkpoint surely has all bodies.
const checkpointSlack = time.Hour

// dropLost drops the objects whose bodies were not copied before the machine was lost, once: all later ones are kept.
func (s *secondPhase) dropLost(ctx context.Context, o *objects.Service) error {
	p := s.store.get()
	if p.LostDropped {
		return nil
	}
	n, err := o.DropLost(ctx, p.Report.Point.Add(-checkpointSlack))
	return errors.Join(err, s.store.change(func(p *recoveryPlan) {
		p.Report.ObjectsDropped += n
		p.LostDropped = err == nil
	}))
}

// isPending reports whether something is still in the store alone.
func (s *secondPhase) isPending() bool { return s.store.get().Step != stepDone }

// awaitFetched returns true once the files of all databases are here, false if ctx ended before.
func (s *secondPhase) awaitFetched(ctx context.Context) bool {
	select {
	case <-s.fetched:
		return true
	case <-ctx.Done():
		return false
	}
}

// noteFetched closes fetched once nothing is away.
func (s *secondPhase) noteFetched() {
	p := s.store.get()
	if slices.ContainsFunc(p.Report.Databases, func(d RecoveredDatabase) bool { return !d.Fetched && !p.isLeft(d) }) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.fetched:
	default:
		close(s.fetched)
	}
}

// order returns the databases in the order in which they are brought back: those that were
// asked for, then the smallest.
func (s *secondPhase) order() (ids []string) {
	p := s.store.get()
	rank := func(d RecoveredDatabase) int {
		if i := slices.Index(p.First, d.Name); i >= 0 {
			return i
		}
		return len(p.First)
	}
	all := p.Report.Databases
	slices.SortStableFunc(all, func(a, b RecoveredDatabase) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Bytes, b.Bytes))
	})
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	return ids
}

// Recovers implements recovery.Offsite.
func (s *secondPhase) Recovers(database string) bool {
	d, ok := s.store.database(database)
	return ok && !d.Done
}

// Left implements recovery.Offsite.
func (s *secondPhase) Left(database string) bool {
	d, ok := s.store.database(database)
	return ok && s.store.get().isLeft(d)
}

// Away implements recovery.Offsite.
func (s *secondPhase) Away(database string) bool {
	d, ok := s.store.database(database)
	return ok && !d.Fetched
}

// retryFetch is between two attempts to fetch while the store is away.
const retryFetch = 10 * time.Second

// Fetch implements recovery.Offsite. It waits for a store that is away. What is damaged
// there stays away: then an earlier backup may do.
func (s *secondPhase) Fetch(ctx context.Context, database string, progress func(done, total int64)) error {
	turn := s.turn(database)
	turn.Lock()
	defer turn.Unlock()
	if !s.Away(database) {
		return nil
	}
	err := s.repeat(ctx, func(ctx context.Context, c *connection) error {
		return fetchDatabase(ctx, c.repository, s.core.Config.DataDir, database, progress)
	})
	if err != nil && !stream.Damaged(err) {
		return err
	}
	if err != nil {
		s.Warn(fmt.Sprintf("files of the database %s are damaged in the copy: %v", database, err))
	}
	err = s.store.changeDatabase(database, func(d *RecoveredDatabase) { d.Fetched = true })
	s.noteFetched()
	return err
}

func (s *secondPhase) turn(database string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[database] == nil {
		s.turns[database] = &sync.Mutex{}
	}
	return s.turns[database]
}

// repeat does something with the store until it succeeds, damage is found or ctx ends.
func (s *secondPhase) repeat(ctx context.Context, do func(context.Context, *connection) error) error {
	for said := false; ; {
		c, err := s.reader(ctx)
		if err == nil {
			err = do(ctx, c)
		}
		if err == nil || ctx.Err() != nil || stream.Damaged(err) || !isAboutStore(err) {
			return errors.Join(err, ctx.Err())
		}
		if !said {
			said = true
			s.core.Log.Warn("the recovery waits for the off-site store", "store", s.core.Config.Offsite.URL, "error", err)
		}
		if !wait(ctx, retryFetch) {
			return ctx.Err()
		}
	}
}

// isAboutStore reports whether an error is one of the store, which may be well later.
func isAboutStore(err error) bool {
	_, ok := errors.AsType[*objectstore.Error](err)
	return ok || errors.Is(err, stream.ErrAbsent)
}

// Warn implements recovery.Offsite.
func (s *secondPhase) Warn(text string) {
	s.core.Log.Warn("recovery", "warning", text)
	if err := s.store.change(func(p *recoveryPlan) {
		if !slices.Contains(p.Report.Warnings, text) {
			p.Report.Warnings = append(p.Report.Warnings, text)
		}
	}); err != nil {
		s.core.Log.Error("note a warning of the recovery", "error", err)
	}
}

// Rebuilding implements recovery.Offsite.
func (s *secondPhase) Rebuilding(database string, last *time.Time) {
	if err := s.store.changeDatabase(database, func(d *RecoveredDatabase) { d.LastCommit = last }); err != nil {
		s.core.Log.Error("note the last commit of a database that is recovered", "database", database, "error", err)
	}
}

// Rebuilt implements recovery.Offsite.
func (s *secondPhase) Rebuilt(database string, last *time.Time, cause error) {
	err := s.store.changeDatabase(database, func(d *RecoveredDatabase) {
		d.Done, d.LastCommit, d.Error = cause == nil, last, ""
		if cause != nil {
			d.Error = databases.OperationMessage(cause)
		}
	})
	if err != nil {
		s.core.Log.Error("note that a database was recovered", "database", database, "error", err)
	}
	if d, _ := s.store.database(database); cause == nil {
		log := s.core.Log.With("database", database, "name", d.Name)
		if d.LastCommit != nil {
			log = log.With("last_commit", *d.LastCommit)
		}
		log.Info("recovered a database")
	}
}

// finish fetches what no rebuild fetched, and reports. It runs after the databases' start.
func (s *secondPhase) finish(ctx context.Context) error {
	for _, id := range s.order() {
		if !s.Away(id) || s.Left(id) {
			continue
		}
		err := s.recovery.FetchBackups(ctx, id, func(int64, int64) {})
		if model.CodeOf(err) == model.CodeNotFound { // it was removed from the trash meanwhile
			err = s.forget(id)
		}
		if err != nil {
			return fmt.Errorf("fetch the backups of %s: %w", id, err)
		}
	}
	var damaged int
	err := s.repeat(ctx, func(ctx context.Context, _ *connection) (err error) {
		damaged, _, err = fetchAway(ctx, s.core, s.objects.MayLeave)
		return err
	})
	if err != nil {
		return fmt.Errorf("fetch the large objects: %w", err)
	}
	now := s.core.Clock()
	if err := s.store.change(func(p *recoveryPlan) {
		p.Report.EndedAt, p.Report.ObjectsDamaged = &now, damaged
		if !slices.ContainsFunc(p.Report.Databases, RecoveredDatabase.isPending) {
			p.Step = stepDone
		}
	}); err != nil {
		return err
	}
	s.tell()
	return nil
}

// forget notes that a database was removed for good, so that nothing of it is brought back.
func (s *secondPhase) forget(database string) error {
	if err := removeFetchList(s.core.Config.DataDir, database); err != nil {
		return err
	}
	err := s.store.changeDatabase(database, func(d *RecoveredDatabase) {
		d.Fetched, d.Done, d.LastCommit, d.Error = true, true, nil, ""
	})
	s.noteFetched()
	return err
}

// tell logs what was brought back.
func (s *secondPhase) tell() {
	r := s.store.get().Report
	for _, d := range r.Databases {
		if d.Error != "" {
			s.core.Log.Error("a database could not be recovered; the next start tries again", "database", d.ID, "name", d.Name, "error", d.Error)
		}
	}
	s.core.Emit(model.Event{Type: model.EventOffsiteRecovered, Message: r.String()})
	s.tellOrganizations(r)
	log := s.core.Log.With("machine", r.Machine, "until", r.Until, "databases", r.back(),
		"objects_dropped", r.ObjectsDropped, "objects_damaged", r.ObjectsDamaged, "warnings", strings.Join(r.Warnings, "; "), "took", s.core.Clock().Sub(r.StartedAt).Round(time.Second))
	if missing := r.Missing(); len(missing) > 0 {
		log.Error("the recovery is not complete", "missing", missing)
		return
	}
	log.Info("the recovery is complete")
}

// tellOrganizations tells each organization's webhooks that the machine was recovered, without which of its databases, and
// that events before may reach them again, with the same ids.
func (s *secondPhase) tellOrganizations(r RecoveryReport) {
	var organizations []model.Organization
	if err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		organizations, err = tx.Organizations().Where(func(model.Organization) bool { return true })
		return err
	}); err != nil {
		s.core.Log.Error("tell organizations of the recovery", "error", err)
	}
	for _, o := range organizations {
		without := ""
		if missing := r.of(o.ID).Missing(); len(missing) > 0 {
			without = " These databases could not be brought back: " + strings.Join(missing, ", ") + "."
		}
		s.core.Emit(model.Event{
			Type: model.EventRecoveryCompleted, Organization: o.ID, Resource: core.OrganizationResource(o),
			Message: fmt.Sprintf("The appliance was recovered from its copy off-site, with everything until %s.%s "+
				"Webhooks may receive events of the time before again, with the same ids.", r.Until.UTC().Format(time.RFC3339), without),
		})
	}
}
