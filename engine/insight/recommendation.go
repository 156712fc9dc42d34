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
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
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

// Adviser keeps what the checks of databases found, so that asking for
// recommendations asks no database.
type Adviser struct {
	Mu    sync.Mutex
	Found map[string]Findings             // by database
	seen  map[string]map[string]time.Time // when each was first seen, by organization and id
	wake  chan struct{}

	running sync.Mutex // held while a database is visited
	memory  map[string]*advice.Memory
}

// Findings are what is known of one database, by check.
type Findings struct {
	At time.Time
	By map[string][]model.Recommendation
	// certificateEnd is zero when the certificate could not be read.
	certificateEnd time.Time
}

func newAdviser() *Adviser {
	return &Adviser{
		Found: map[string]Findings{}, seen: map[string]map[string]time.Time{},
		wake: make(chan struct{}, 1), memory: map[string]*advice.Memory{},
	}
}

// Advise checks every database, now and again or when somebody asks, until
// ctx ends.
func (s *Service) Advise(ctx context.Context) {
	ticker := time.NewTicker(adviseInterval)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-ticker.C:
			s.AdviseAll(ctx, 0)
		case <-s.Adviser.wake:
			if s.core.Clock().Sub(last) < adviseAgain {
				continue
			}
			last = s.core.Clock()
			s.AdviseAll(ctx, adviseAgain)
		case <-ctx.Done():
			return
		}
	}
}

// AdviseAll visits the databases whose findings are at least so old, and
// forgets those that are gone.
func (s *Service) AdviseAll(ctx context.Context, age time.Duration) {
	databases, err := s.databases.KeptDatabases()
	if err != nil {
		s.core.Log.Error("list databases to advise on", "error", err)
		return
	}
	s.Adviser.keepOnly(databases)
	for _, db := range databases {
		if ctx.Err() != nil || db.Sandbox || s.Adviser.fresh(db.ID, s.core.Clock(), age) {
			continue
		}
		if err := s.AdviseOne(ctx, db); err != nil {
			s.core.Log.Debug("advise on database", "database", db.ID, "error", err)
		}
	}
}

func (a *Adviser) fresh(id string, now time.Time, age time.Duration) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	last, ok := a.Found[id]
	return ok && now.Sub(last.At) < age
}

func (a *Adviser) certificateEnd(id string) time.Time {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.Found[id].certificateEnd
}

func (a *Adviser) keepOnly(databases []model.Database) {
	kept := map[string]bool{}
	for _, db := range databases {
		kept[db.ID] = true
	}
	a.running.Lock()
	defer a.running.Unlock()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for id := range a.Found {
		if !kept[id] {
			delete(a.Found, id)
			delete(a.memory, id)
		}
	}
}

// AdviseOne looks at one database. What cannot be asked leaves what was found
// before.
func (s *Service) AdviseOne(ctx context.Context, db model.Database) error {
	a := s.Adviser
	a.running.Lock()
	defer a.running.Unlock()
	a.Mu.Lock()
	results := Findings{At: s.core.Clock(), By: maps.Clone(a.Found[db.ID].By)}
	a.Mu.Unlock()
	if certificate, err := postgres.ReadCertificate(s.databases.DataDirectory(db.ID, db.Generation)); err == nil {
		results.certificateEnd = certificate.NotAfter
	}
	var err error
	if status, _ := s.databases.LiveStatus(db); status == model.DatabaseAvailable {
		err = s.runChecks(ctx, db, &results)
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Found[db.ID] = results
	return err
}

// runChecks runs every check on one database.
func (s *Service) runChecks(ctx context.Context, db model.Database, results *Findings) error {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	if s.Adviser.memory[db.ID] == nil {
		s.Adviser.memory[db.ID] = advice.NewMemory()
	}
	session := &advice.Session{Now: results.At, Limits: s.core.Config.Advice, Database: db, Memory: s.Adviser.memory[db.ID]}
	var err error
	if session.Statements, err = s.statements(ctx, db); err != nil {
		return err
	}
	if session.Conn, err = s.databases.Instances.Connect(ctx, db.ID, db.Name); err != nil {
		return err
	}
	defer session.Conn.Close(context.WithoutCancel(ctx))
	if results.By == nil {
		results.By = map[string][]model.Recommendation{}
	}
	for _, check := range advice.DatabaseChecks() {
		found, err := s.runCheck(ctx, session, check)
		if err != nil {
			s.core.Log.Warn("check database", "database", db.ID, "check", check.Name, "error", err)
			continue
		}
		results.By[check.Name] = found
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
	return advice.Statements(ctx, conn, db.Name)
}

// runCheck runs one check in a transaction that cannot write, within its time
// on the server's side too: a context alone would cost the session.
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

// Recommendations returns the advice for the call's organization, gravest
// first, and the newest first of what is equally grave: what facts say now, and what the databases last said.
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
	facts, err := s.Facts(call.Organization, databases, usage)
	if err != nil {
		return nil, err
	}
	found := append(advice.Account(facts), s.Adviser.about(databases)...)
	s.Adviser.date(call.Organization, found, facts.Now)
	slices.SortFunc(found, func(a, b model.Recommendation) int {
		return cmp.Compare(recommendationPlace(a), recommendationPlace(b))
	})
	select {
	case s.Adviser.wake <- struct{}{}:
	default: // it is awake
	}
	return found, nil
}

// RecommendationList returns a page of them. It goes on behind the last one
// shown also when that has gone meanwhile.
func (s *Service) RecommendationList(call *model.Call, page core.Page) (core.List[model.Recommendation], error) {
	w, err := s.core.Walk(call, model.ActionRecommendationList, page)
	if err != nil {
		return core.List[model.Recommendation]{}, err
	}
	all, err := s.Recommendations(call)
	if err != nil {
		return core.List[model.Recommendation]{}, err
	}
	all = slices.DeleteFunc(all, func(r model.Recommendation) bool { return recommendationPlace(r) <= w.After })
	shown := min(w.Limit, len(all))
	return core.NewList(w, all[:shown], shown < len(all), recommendationPlace), nil
}

// recommendationPlace is where a recommendation stands among all: places compare
// as the recommendations are listed.
func recommendationPlace(r model.Recommendation) string {
	return fmt.Sprintf("%d%016x%s", r.Severity.Rank(), math.MaxInt64-r.DetectedAt.UnixNano(), r.ID())
}

// about returns what was found of the databases.
func (a *Adviser) about(databases []model.Database) (all []model.Recommendation) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for _, db := range databases {
		for _, check := range advice.DatabaseChecks() {
			all = append(all, a.Found[db.ID].By[check.Name]...)
		}
	}
	return all
}

// date sets when each recommendation was first seen, and forgets those that
// are gone.
func (a *Adviser) date(organization string, found []model.Recommendation, now time.Time) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
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

// Facts gathers what advice goes by without asking a database.
func (s *Service) Facts(organization string, databases []model.Database, usage Usage) (advice.Facts, error) {
	facts := advice.Facts{
		Now: s.core.Clock(), Limits: s.core.Config.Advice, Proofs: s.core.Config.Proofs, Plan: model.Plan{Name: usage.Plan, Limits: usage.Limits}, Used: usage.Used,
		DiskFree: usage.Host.DiskFree, DiskTotal: usage.Host.DiskTotal,
	}
	facts.ClockAhead, facts.ClockGrace = s.core.ClockAhead()
	err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) error { // damaged objects may have been replaced
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

func (s *Service) aboutDatabase(tx *meta.Tx, db model.Database) (advice.Database, error) {
	about := advice.Database{Database: db}
	about.Status, about.StatusReason = s.databases.LiveStatus(db)
	if status, receives := s.recovery.WALStatus(db.ID); receives {
		about.Archiving = &advice.Archiving{
			Streaming: status.Healthy(), SlotLost: status.SlotState == "lost", Behind: status.RPO(s.core.Clock()),
			Backlog: status.Backlog, Failures: status.Failures, Error: status.LastError,
		}
	}
	about.CertificateEnd = s.Adviser.certificateEnd(db.ID)
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
	if about.FailedProofs, err = core.AllBy(tx.Backups(), meta.ByVerification, failed); err != nil {
		return about, err
	}
	about.LastCompleted, err = databases.NewestCompleted(tx, db.ID)
	about.Unprotected = databases.IsUnprotected(db, about.LastCompleted)
	return about, err
}
