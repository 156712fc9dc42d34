package engine

import (
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Measurement is the appliance in figures.
type Measurement struct {
	Organizations int
	Databases     map[model.DatabaseStatus]int
	DatabaseBytes int64
	Connections   int64
	// WALLag is how far the receiver of WAL that is farthest behind is, in bytes.
	WALLag int64
	Totals model.Totals
	// BackupBytes is what all backups, WAL and exports occupy on disk.
	BackupBytes int64
	// Unprotected databases are to have a completed backup and have none;
	// BackupAge is how old the newest one is of the database that is worst off of
	// the others.
	Unprotected int
	BackupAge   time.Duration
	// AuditQueued entries wait to be written, of AuditRoom that may.
	AuditQueued, AuditRoom int
	Recommendations        map[model.Severity]int
	Host                   Host
}

// Measure takes the figures. It asks no database.
func (e *Engine) Measure() (Measurement, error) {
	m := Measurement{
		Databases: map[model.DatabaseStatus]int{}, AuditQueued: len(e.audits.entries), AuditRoom: cap(e.audits.entries),
		Recommendations: map[model.Severity]int{},
	}
	var err error
	if m.Host, err = measureHost(e.cfg.DataDir); err != nil {
		return m, err
	}
	err = e.meta.ViewFlushed(func(tx *meta.Tx) error {
		return errors.Join(e.measureOrganizations(tx, &m), e.measureDatabases(tx, &m))
	})
	return m, err
}

func (e *Engine) measureOrganizations(tx *meta.Tx, m *Measurement) error {
	return tx.Organizations().All(func(o model.Organization) error {
		m.Organizations++
		totals, err := tx.Totals(o.ID)
		m.Totals = m.Totals.Plus(totals, 1)
		return err
	})
}

func (e *Engine) measureDatabases(tx *meta.Tx, m *Measurement) error {
	return tx.Databases().All(func(db model.Database) error {
		occupied, err := e.databaseBackupBytes(tx, db.ID)
		m.BackupBytes += occupied
		if err != nil || db.Trash != nil {
			return err
		}
		status, _ := e.liveStatus(db)
		m.Databases[status]++
		stats, _ := e.stats.get(db.ID)
		m.DatabaseBytes += stats.SizeBytes
		m.Connections += int64(stats.Connections)
		m.WALLag = max(m.WALLag, stats.WALLag)
		for severity, count := range e.adviser.count(db.ID) {
			m.Recommendations[severity] += count
		}
		newest, err := newestCompleted(tx, db.ID)
		if err != nil {
			return err
		}
		if isUnprotected(db, newest) {
			m.Unprotected++
		}
		if newest != nil && newest.CompletedAt != nil {
			m.BackupAge = max(m.BackupAge, e.clock().Sub(*newest.CompletedAt))
		}
		return nil
	})
}

// count returns how many findings there are on a database.
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

// Ready says why the appliance cannot serve, nil when it can.
func (e *Engine) Ready() error {
	if !e.Started() {
		return errors.New("starting")
	}
	if e.ctx.Err() != nil {
		return errors.New("stopping")
	}
	return e.meta.View(func(*meta.Tx) error { return nil })
}
