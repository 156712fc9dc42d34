package engine

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
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

const (
	// adviseInterval is how often every database is checked in the background.
	adviseInterval = 5 * time.Minute
	// adviseAgain is how old the findings on a database must be for somebody's
	// question to have it checked anew before its turn.
	adviseAgain = 10 * time.Second
	// checkTimeout bounds one check of one database, visitTimeout all of them.
	checkTimeout = 5 * time.Second
	visitTimeout = 20 * time.Second
)

// adviser keeps what the checks of databases found, so that asking for
// recommendations asks no database.
type adviser struct {
	mu    sync.Mutex
	found map[string]findings             // by database
	seen  map[string]map[string]time.Time // when each was first seen, by organization and id
	wake  chan struct{}

	running sync.Mutex // held while a database is visited
	memory  map[string]*advice.Memory
}

// findings are what is known of one database, by check.
type findings struct {
	at time.Time
	by map[string][]model.Recommendation
	// certificateEnd is zero when the certificate could not be read.
	certificateEnd time.Time
}

func newAdviser() *adviser {
	return &adviser{
		found: map[string]findings{}, seen: map[string]map[string]time.Time{},
		wake: make(chan struct{}, 1), memory: map[string]*advice.Memory{},
	}
}

// advise checks every database, now and again or when somebody asks, until
// ctx ends.
func (e *Engine) advise(ctx context.Context) {
	ticker := time.NewTicker(adviseInterval)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-ticker.C:
			e.adviseAll(ctx, 0)
		case <-e.adviser.wake:
			if e.clock().Sub(last) < adviseAgain {
				continue
			}
			last = e.clock()
			e.adviseAll(ctx, adviseAgain)
		case <-ctx.Done():
			return
		}
	}
}

// adviseAll visits the databases whose findings are at least so old, and
// forgets those that are gone.
func (e *Engine) adviseAll(ctx context.Context, age time.Duration) {
	databases, err := e.keptDatabases()
	if err != nil {
		e.log.Error("list databases to advise on", "error", err)
		return
	}
	e.adviser.keepOnly(databases)
	for _, db := range databases {
		if ctx.Err() != nil || db.Sandbox || e.adviser.fresh(db.ID, e.clock(), age) {
			continue
		}
		if err := e.adviseOne(ctx, db); err != nil {
			e.log.Debug("advise on database", "database", db.ID, "error", err)
		}
	}
}

func (a *adviser) fresh(id string, now time.Time, age time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.found[id]
	return ok && now.Sub(last.at) < age
}

func (a *adviser) certificateEnd(id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found[id].certificateEnd
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

// adviseOne looks at one database. What cannot be asked leaves what was found
// before.
func (e *Engine) adviseOne(ctx context.Context, db model.Database) error {
	a := e.adviser
	a.running.Lock()
	defer a.running.Unlock()
	a.mu.Lock()
	results := findings{at: e.clock(), by: maps.Clone(a.found[db.ID].by)}
	a.mu.Unlock()
	if certificate, err := postgres.ReadCertificate(e.dataDirectory(db.ID, db.Generation)); err == nil {
		results.certificateEnd = certificate.NotAfter
	}
	var err error
	if status, _ := e.liveStatus(db); status == model.DatabaseAvailable {
		err = e.runChecks(ctx, db, &results)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found[db.ID] = results
	return err
}

// runChecks runs every check on one database.
func (e *Engine) runChecks(ctx context.Context, db model.Database, results *findings) error {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	if e.adviser.memory[db.ID] == nil {
		e.adviser.memory[db.ID] = advice.NewMemory()
	}
	session := &advice.Session{Now: results.at, Limits: e.cfg.Advice, Database: db, Memory: e.adviser.memory[db.ID]}
	var err error
	if session.Statements, err = e.statements(ctx, db); err != nil {
		return err
	}
	if session.Conn, err = e.instances.Connect(ctx, db.ID, db.Name); err != nil {
		return err
	}
	defer session.Conn.Close(context.WithoutCancel(ctx))
	if results.by == nil {
		results.by = map[string][]model.Recommendation{}
	}
	for _, check := range advice.DatabaseChecks() {
		found, err := e.runCheck(ctx, session, check)
		if err != nil {
			e.log.Warn("check database", "database", db.ID, "check", check.Name, "error", err)
			continue
		}
		results.by[check.Name] = found
	}
	return nil
}

func (e *Engine) statements(ctx context.Context, db model.Database) ([]advice.Statement, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conn, err := e.instances.Connect(ctx, db.ID, maintenance)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return advice.Statements(ctx, conn, db.Name)
}

// runCheck runs one check in a transaction that cannot write, within its time
// on the server's side too: a context alone would cost the session.
func (e *Engine) runCheck(ctx context.Context, session *advice.Session, check advice.Check) ([]model.Recommendation, error) {
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

// Recommendations returns the advice for the call's organization, gravest
// first, and the newest first of what is equally grave: what facts say now, and what the databases last said.
func (e *Engine) Recommendations(call *model.Call) ([]model.Recommendation, error) {
	databases, err := e.databasesOf(call.Organization)
	if err != nil {
		return nil, err
	}
	usage, err := e.usage(call, databases)
	if err != nil {
		return nil, err
	}
	return e.recommendations(call, databases, usage)
}

func (e *Engine) recommendations(call *model.Call, databases []model.Database, usage Usage) ([]model.Recommendation, error) {
	facts, err := e.facts(call.Organization, databases, usage)
	if err != nil {
		return nil, err
	}
	found := append(advice.Account(facts), e.adviser.about(databases)...)
	e.adviser.date(call.Organization, found, facts.Now)
	slices.SortFunc(found, func(a, b model.Recommendation) int {
		return cmp.Compare(recommendationPlace(a), recommendationPlace(b))
	})
	select {
	case e.adviser.wake <- struct{}{}:
	default: // it is awake
	}
	return found, nil
}

// RecommendationList returns a page of them. It goes on behind the last one
// shown also when that has gone meanwhile.
func (e *Engine) RecommendationList(call *model.Call, page Page) (List[model.Recommendation], error) {
	w, err := e.walk(call, model.ActionRecommendationList, page)
	if err != nil {
		return List[model.Recommendation]{}, err
	}
	all, err := e.Recommendations(call)
	if err != nil {
		return List[model.Recommendation]{}, err
	}
	all = slices.DeleteFunc(all, func(r model.Recommendation) bool { return recommendationPlace(r) <= w.after })
	shown := min(w.limit, len(all))
	return newList(w, all[:shown], shown < len(all), recommendationPlace), nil
}

// recommendationPlace is where a recommendation stands among all: places compare
// as the recommendations are listed.
func recommendationPlace(r model.Recommendation) string {
	return fmt.Sprintf("%d%016x%s", r.Severity.Rank(), math.MaxInt64-r.DetectedAt.UnixNano(), r.ID())
}

// about returns what was found of the databases.
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

// date sets when each recommendation was first seen, and forgets those that
// are gone.
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

// facts gathers what advice goes by without asking a database.
func (e *Engine) facts(organization string, databases []model.Database, usage Usage) (advice.Facts, error) {
	facts := advice.Facts{
		Now: e.clock(), Limits: e.cfg.Advice, Proofs: e.cfg.Proofs, Plan: model.Plan{Name: usage.Plan, Limits: usage.Limits}, Used: usage.Used,
		DiskFree: usage.Host.DiskFree, DiskTotal: usage.Host.DiskTotal,
	}
	facts.ClockAhead, facts.ClockGrace = e.clockAhead()
	err := e.meta.ViewFlushed(func(tx *meta.Tx) error { // damaged objects may have been replaced
		keys, err := allBy(tx.Keys(), meta.ByOrganization, meta.Key(organization))
		if err != nil {
			return err
		}
		facts.Keys = slices.DeleteFunc(keys, func(k model.Key) bool { return !k.Usable(facts.Now) })
		for _, db := range databases {
			about, err := e.aboutDatabase(tx, db)
			if err != nil {
				return err
			}
			facts.Databases = append(facts.Databases, about)
		}
		for _, d := range journalDamages(tx, facts.Now) {
			facts.DamagedJournal = append(facts.DamagedJournal, d.FoundAt)
		}
		facts.Damaged, err = damagedObjects(tx, organization)
		return err
	})
	return facts, err
}

func (e *Engine) aboutDatabase(tx *meta.Tx, db model.Database) (advice.Database, error) {
	about := advice.Database{Database: db}
	about.Status, about.StatusReason = e.liveStatus(db)
	if status, receives := e.WALStatus(db.ID); receives {
		about.Archiving = &advice.Archiving{
			Streaming: status.Healthy(), SlotLost: status.SlotState == "lost", Behind: status.RPO(e.clock()),
			Backlog: status.Backlog, Failures: status.Failures, Error: status.LastError,
		}
	}
	about.CertificateEnd = e.adviser.certificateEnd(db.ID)
	// A database has one backup under way at the most.
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
	if about.FailedProofs, err = allBy(tx.Backups(), meta.ByVerification, failed); err != nil {
		return about, err
	}
	about.LastCompleted, err = newestCompleted(tx, db.ID)
	about.Unprotected = isUnprotected(db, about.LastCompleted)
	return about, err
}
