package insight

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/advice"
	"holdfast/engine/certificates"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

const (
	// adviseInterval is how often every database is checked in the background.
	adviseInterval = 5 * time.Minute
	// adviseRetry is the age of findings from which a request for recommendations
	// triggers a new check.
	adviseRetry = 10 * time.Second
	// checkTimeout bounds one check of one database, checksTimeout all of them.
	checkTimeout  = 5 * time.Second
	checksTimeout = 20 * time.Second
)

// adviser caches the findings of the checks of databases, so that listing
// recommendations queries no database.
type adviser struct {
	mu    sync.Mutex
	found map[string]findings             // by database
	seen  map[string]map[string]time.Time // when each was first seen, by organization and id
	wake  chan struct{}

	running sync.Mutex // held while a database is checked
	memory  map[string]*advice.Memory
}

// findings are the results of the checks of one database.
type findings struct {
	at time.Time
	by map[string][]model.Recommendation
	// certificateEnd is zero when the certificate could not be read.
	certificateEnd time.Time
	// present is the version of PostgreSQL that this machine has for the database, "" when it has none.
	present string
}

func newAdviser() *adviser {
	return &adviser{
		found: map[string]findings{}, seen: map[string]map[string]time.Time{},
		wake: make(chan struct{}, 1), memory: map[string]*advice.Memory{},
	}
}

// Advise checks every database, periodically and after a request for
// recommendations, until ctx ends.
func (s *Service) Advise(ctx context.Context) {
	ticker := time.NewTicker(adviseInterval)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-ticker.C:
			s.AdviseAll(ctx, 0)
		case <-s.adviser.wake:
			if !core.IsPast(s.core.Clock(), last, adviseRetry) {
				continue
			}
			last = s.core.Clock()
			s.AdviseAll(ctx, adviseRetry)
		case <-ctx.Done():
			return
		}
	}
}

// AdviseAll checks the databases whose findings are at least that old, and drops
// the findings of removed databases.
func (s *Service) AdviseAll(ctx context.Context, age time.Duration) {
	databases, err := s.databases.KeptDatabases()
	if err != nil {
		s.core.Log.Error("list databases to advise on", "error", err)
		return
	}
	s.adviser.keepOnly(databases)
	for _, db := range databases {
		if ctx.Err() != nil || db.Sandbox || s.adviser.fresh(db.ID, s.core.Clock(), age) {
			continue
		}
		if err := s.AdviseOne(ctx, db); err != nil {
			s.core.Log.Debug("advise on database", "database", db.ID, "error", err)
		}
	}
}

func (a *adviser) fresh(id string, now time.Time, age time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.found[id]
	return ok && !core.IsPast(now, last.at, age)
}

func (a *adviser) certificateEnd(id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found[id].certificateEnd
}

func (a *adviser) presentVersion(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found[id].present
}

func (a *adviser) keepOnly(databases []model.Database) {
	kept := map[string]bool{}
	for _, db := range databases {
		kept[db.ID] = true
	}
	a.running.Lock()
	defer a.running.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.found {
		if !kept[id] {
			delete(a.found, id)
			delete(a.memory, id)
		}
	}
}

// AdviseOne checks one database. A check that fails keeps its earlier findings.
func (s *Service) AdviseOne(ctx context.Context, db model.Database) error {
	a := s.adviser
	a.running.Lock()
	defer a.running.Unlock()
	a.mu.Lock()
	results := findings{at: s.core.Clock(), by: maps.Clone(a.found[db.ID].by)}
	a.mu.Unlock()
	if certificate, err := certificates.Read(certificates.InDataDirectory(s.databases.DataDirectory(db.ID, db.Generation))); err == nil {
		results.certificateEnd = certificate.NotAfter
	}
	if bin, ok := s.databases.Majors.Newest(ctx, db.Major); ok {
		results.present = bin.Version
	}
	var err error
	if status, _ := s.databases.LiveStatus(db); status == model.DatabaseAvailable && !s.databases.IsAsleep(db.ID) {
		err = s.runChecks(ctx, db, &results)
	}
	a.put(db.ID, results)
	return err
}

// Findings returns the findings on a database by check, nil when it has not been
// checked or is gone.
func (s *Service) Findings(database string) map[string][]model.Recommendation {
	s.adviser.mu.Lock()
	defer s.adviser.mu.Unlock()
	return maps.Clone(s.adviser.found[database].by)
}

// SetFindings replaces the findings on a database, as a check just now would.
func (s *Service) SetFindings(database string, byCheck map[string][]model.Recommendation) {
	s.adviser.put(database, findings{at: s.core.Clock(), by: byCheck})
}

func (a *adviser) put(database string, results findings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found[database] = results
}

// runChecks runs every check on one database.
func (s *Service) runChecks(ctx context.Context, db model.Database, results *findings) error {
	ctx, cancel := context.WithTimeout(ctx, checksTimeout)
	defer cancel()
	if s.adviser.memory[db.ID] == nil {
		s.adviser.memory[db.ID] = advice.NewMemory()
	}
	session := &advice.Session{Now: results.at, Limits: s.core.Config.Advice, Database: db, Memory: s.adviser.memory[db.ID]}
	var err error
	if session.Statements, err = s.statements(ctx, db); err != nil {
		return err
	}
	if session.Conn, err = s.databases.Instances.Connect(ctx, db.ID, db.Name); err != nil {
		return err
	}
	defer session.Conn.Close(context.WithoutCancel(ctx))
	if results.by == nil {
		results.by = map[string][]model.Recommendation{}
	}
	for _, check := range advice.DatabaseChecks() {
		found, err := s.runCheck(ctx, session, check)
		if err != nil {
			s.core.Log.Warn("check database", "database", db.ID, "check", check.Name, "error", err)
			continue
		}
		results.by[check.Name] = found
	}
	return nil
}

func (s *Service) statements(ctx context.Context, db model.Database) ([]advice.Statement, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conn, err := s.databases.Instances.Connect(ctx, db.ID, databases.Maintenance)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return advice.Statements(ctx, conn, db.Name, advice.ByTotalTime)
}

// runCheck runs one check in a read-only transaction with timeouts on the server:
// a cancelled context alone would end the session.
func (s *Service) runCheck(ctx context.Context, session *advice.Session, check advice.Check) ([]model.Recommendation, error) {
	var found []model.Recommendation
	err := pgx.BeginTxFunc(ctx, session.Conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 5000; SET LOCAL lock_timeout = 500"); err != nil {
			return err
		}
		found, err = check.Run(ctx, session)
		return err
	})
	return found, err
}

// Recommendations returns the recommendations for the call's organization, sorted
// by severity and then newest first. They follow from current facts and the latest
// checks of the databases.
func (s *Service) Recommendations(call *model.Call) ([]model.Recommendation, error) {
	databases, err := s.databases.DatabasesOf(call.Organization)
	if err != nil {
		return nil, err
	}
	usage, err := s.usage(call, databases)
	if err != nil {
		return nil, err
	}
	return s.recommendations(call, databases, usage)
}

func (s *Service) recommendations(call *model.Call, databases []model.Database, usage Usage) ([]model.Recommendation, error) {
	facts, err := s.facts(call.Organization, databases, usage)
	if err != nil {
		return nil, err
	}
	found := append(advice.Account(facts), s.adviser.about(databases)...)
	s.adviser.date(call.Organization, found, facts.Now)
	slices.SortFunc(found, func(a, b model.Recommendation) int {
		return cmp.Compare(recommendationOrder(a), recommendationOrder(b))
	})
	select {
	case s.adviser.wake <- struct{}{}:
	default: // a wake-up is pending
	}
	return found, nil
}

// RecommendationFilter selects recommendations. An empty field selects all.
type RecommendationFilter struct {
	Severity model.Severity
	Category model.Category
	Code     string
}

func (f RecommendationFilter) admits(r model.Recommendation) bool {
	return core.Equals(f.Severity, r.Severity) && core.Equals(f.Category, r.Category) && core.Equals(f.Code, r.Code)
}

// RecommendationList returns a page of the recommendations that match the filter. A
// page continues after the last one shown even when that no longer exists.
func (s *Service) RecommendationList(call *model.Call, filter RecommendationFilter, page core.Page) (core.List[model.Recommendation], error) {
	w, err := core.Select(filter, filter.admits).Walk(s.core, call, model.ActionRecommendationList, page)
	if err != nil {
		return core.List[model.Recommendation]{}, err
	}
	all, err := s.Recommendations(call)
	if err != nil {
		return core.List[model.Recommendation]{}, err
	}
	all = slices.DeleteFunc(all, func(r model.Recommendation) bool {
		return recommendationOrder(r) <= w.After || !filter.admits(r)
	})
	shown := min(w.Limit, len(all))
	return core.NewList(w, all[:shown], shown < len(all), recommendationOrder), nil
}

// recommendationOrder returns the sort key of a recommendation in lists.
func recommendationOrder(r model.Recommendation) string {
	return fmt.Sprintf("%d%016x%s", r.Severity.Rank(), math.MaxInt64-r.DetectedAt.UnixNano(), r.ID())
}

// about returns the findings on the databases.
func (a *adviser) about(databases []model.Database) (all []model.Recommendation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, db := range databases {
		for _, check := range advice.DatabaseChecks() {
			all = append(all, a.found[db.ID].by[check.Name]...)
		}
	}
	return all
}

// date sets when each recommendation was first seen, and drops those that no
// longer apply.
func (a *adviser) date(organization string, found []model.Recommendation, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := map[string]time.Time{}
	for i := range found {
		id := found[i].ID()
		at, before := a.seen[organization][id]
		if !before {
			at = now
		}
		seen[id], found[i].DetectedAt = at, at
	}
	a.seen[organization] = seen
}

// facts gathers the facts for recommendations without querying a database.
func (s *Service) facts(organization string, databases []model.Database, usage Usage) (advice.Facts, error) {
	facts := advice.Facts{
		Now: s.core.Clock(), Limits: s.core.Config.Advice, Verifies: s.core.Config.VerifyBackups, Plan: model.Plan{Name: usage.Plan, Limits: usage.Limits}, Used: usage.Used,
		DiskFree: usage.Host.DiskFree, DiskTotal: usage.Host.DiskTotal,
	}
	var err error
	if facts.Offsite, err = s.aboutOffsite(organization); err != nil {
		return facts, err
	}
	facts.ClockAhead, facts.ClockGrace = s.core.ClockAhead()
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error { // flushed, because damaged objects may have been replaced
		keys, err := core.AllBy(tx.Keys(), meta.ByOrganization, meta.Key(organization))
		if err != nil {
			return err
		}
		facts.Keys = slices.DeleteFunc(keys, func(k model.Key) bool { return !k.Usable(facts.Now) })
		for _, db := range databases {
			about, err := s.aboutDatabase(tx, db)
			if err != nil {
				return err
			}
			facts.Databases = append(facts.Databases, about)
		}
		for _, d := range objects.JournalDamages(tx, facts.Now) {
			facts.DamagedJournal = append(facts.DamagedJournal, d.FoundAt)
		}
		facts.Damaged, err = objects.DamagedObjects(tx, organization)
		return err
	})
	return facts, err
}

func (s *Service) aboutOffsite(organization string) (advice.Offsite, error) {
	st, err := s.offsite.StatusFor(organization)
	about := advice.Offsite{
		State: st.State, Lag: st.Lag, Backlog: st.Backlog, Problem: st.Problem, Unreadable: st.Unreadable, Foreign: len(st.Foreign),
		Tier: advice.Tier{AwayObjects: st.AwayObjects, AwayBytes: st.AwayBytes, LocalBytes: st.LocalBytes, LocalLimit: st.LocalLimit, Readable: st.Readable},
	}
	if st.Verified != nil {
		about.Verified, about.Damaged, about.Unusable = &st.Verified.At, len(st.Verified.Damage), st.Verified.Point == nil
	}
	if st.Restored != nil && st.Restored.Error != "" {
		about.Unrestorable = st.Restored.Name
	}
	if st.Fenced != nil {
		about.Machine, about.Since = st.Fenced.Machine, st.Fenced.At
	}
	return about, err
}

func (s *Service) aboutDatabase(tx *meta.Tx, db model.Database) (advice.Database, error) {
	about := advice.Database{Database: db}
	about.Status, about.StatusReason = s.databases.LiveStatus(db)
	if status, receives := s.recovery.WALStatus(db.ID); receives {
		about.Archiving = &advice.Archiving{
			Streaming: status.Healthy(), SlotLost: status.SlotState == "lost", Behind: status.RPO(s.core.Clock()),
			Backlog: status.Backlog, Failures: status.Failures, Error: status.LastError,
		}
	}
	if stats, ok := s.databases.Statistics.Get(db.ID); ok {
		about.Slots = stats.Slots
	}
	about.CertificateEnd, about.Present = s.adviser.certificateEnd(db.ID), s.adviser.presentVersion(db.ID)
	// A database has at most one backup under way.
	attempts, _, err := tx.Backups().Newest(meta.ByDatabase, meta.Key(db.ID), "", 2)
	if err != nil {
		return about, err
	}
	for _, b := range attempts {
		if about.LastAttempt == nil && b.CompletedAt != nil {
			about.LastAttempt = &b
		}
	}
	failed := meta.Key(db.ID, string(model.VerificationFailed))
	if about.FailedVerifications, err = core.AllBy(tx.Backups(), meta.ByVerification, failed); err != nil {
		return about, err
	}
	if about.LastCompleted, err = databases.NewestCompleted(tx, db.ID); err != nil {
		return about, err
	}
	about.Current = about.LastCompleted != nil && s.databases.RestsSince(db, *about.LastCompleted)
	about.Unprotected = databases.IsUnprotected(db, about.LastCompleted)
	return about, nil
}
