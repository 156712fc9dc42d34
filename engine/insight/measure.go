package insight

import (
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
)

// Measurement is a set of figures about the appliance.
type Measurement struct {
	Organizations int
	Databases     map[model.DatabaseStatus]int
	Each          []DatabaseMeasurement
	Totals        model.Totals
	// BackupBytes is what all backups, WAL and exports occupy on disk.
	BackupBytes int64
	// Unprotected is the number of databases that should have a completed backup
	// and have none.
	Unprotected int
	Asleep      int // databases that sleep
	// AuditQueued is the number of entries that wait to be written, AuditRoom the
	// capacity of their queue.
	AuditQueued, AuditRoom int
	Recommendations        map[model.Severity]int
	Host                   core.Host
	Offsite                offsite.Status
}

// DatabaseMeasurement is a set of figures about one database.
type DatabaseMeasurement struct {
	ID, Name, Project string
	Available         bool
	Statistics        *databases.Statistics // nil until it was first measured
	BackupAge         *time.Duration        // of the newest completed backup, 0 while a database sleeps that it has everything of; nil if there is none
}

// Measure takes the figures. It queries no database.
func (s *Service) Measure() (Measurement, error) {
	m := Measurement{
		Databases: map[model.DatabaseStatus]int{}, AuditQueued: len(s.core.Audits.Entries), AuditRoom: cap(s.core.Audits.Entries),
		Recommendations: map[model.Severity]int{},
	}
	m.Offsite = s.offsite.Status()
	var err error
	if m.Host, err = core.MeasureHost(s.core.Config.DataDir); err != nil {
		return m, err
	}
	var all []model.Database
	if err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		all, err = s.measureDatabases(tx, &m)
		return errors.Join(s.measureOrganizations(tx, &m), err)
	}); err != nil {
		return m, err
	}
	m.BackupBytes, err = s.recovery.BytesOf(all)
	return m, err
}

func (s *Service) measureOrganizations(tx *meta.Tx, m *Measurement) error {
	return tx.Organizations().All(func(o model.Organization) error {
		m.Organizations++
		totals, err := tx.Totals(o.ID)
		m.Totals = m.Totals.Plus(totals, 1)
		return err
	})
}

// measureDatabases returns all databases, including those in the trash.
func (s *Service) measureDatabases(tx *meta.Tx, m *Measurement) (all []model.Database, err error) {
	err = tx.Databases().All(func(db model.Database) error {
		all = append(all, db)
		if db.Trash != nil {
			return nil
		}
		status, _ := s.databases.LiveStatus(db)
		m.Databases[status]++
		one := DatabaseMeasurement{ID: db.ID, Name: db.Name, Project: db.Project, Available: status == model.DatabaseAvailable}
		if stats, ok := s.databases.Statistics.Get(db.ID); ok {
			one.Statistics = &stats
		}
		for severity, count := range s.adviser.count(db.ID) {
			m.Recommendations[severity] += count
		}
		newest, err := databases.NewestCompleted(tx, db.ID)
		if err != nil {
			return err
		}
		if s.databases.IsAsleep(db.ID) {
			m.Asleep++
		}
		if databases.IsUnprotected(db, newest) {
			m.Unprotected++
		}
		if newest != nil && newest.CompletedAt != nil {
			age := s.core.Clock().Sub(*newest.CompletedAt)
			if s.databases.RestsSince(db, *newest) {
				age = 0
			}
			one.BackupAge = &age
		}
		m.Each = append(m.Each, one)
		return nil
	})
	return all, err
}

// count returns the number of findings on a database by severity.
func (a *adviser) count(id string) map[model.Severity]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := map[model.Severity]int{}
	for _, found := range a.found[id].by {
		for _, r := range found {
			counts[r.Severity]++
		}
	}
	return counts
}

// Ready returns why the appliance cannot serve, nil if it can.
func (s *Service) Ready() error {
	if !s.databases.Started() {
		return errors.New("starting")
	}
	if s.core.Lifetime.Err() != nil {
		return errors.New("stopping")
	}
	if s.core.ReadOnly() != nil { // its message names the other machine
		return errors.New("read-only, because another machine took over")
	}
	return s.core.Meta.View(func(*meta.Tx) error { return nil })
}
