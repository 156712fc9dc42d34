package databases

import (
	"context"
	"sync"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// minorUpdates remembers to which version a database was restarted by itself, so
// that a restart which does not bring the version is not repeated.
type minorUpdates struct {
	mu    sync.Mutex
	tried map[string]string // version by the id of the database
}

// first reports whether no restart was tried for that version yet, and notes one.
func (m *minorUpdates) first(id, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tried[id] == version {
		return false
	}
	if m.tried == nil {
		m.tried = map[string]string{}
	}
	m.tried[id] = version
	return true
}

// forget is for a restart that did not begin: the next sweep tries it again.
func (m *minorUpdates) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tried, id)
}

// UpdateMinor restarts a database whose maintenance window is open if this machine
// has a newer minor version of PostgreSQL than its server runs on. A database
// without a window is restarted by people only.
func (s *Service) UpdateMinor(ctx context.Context, db model.Database) error {
	now := s.core.Clock()
	if db.Sandbox || db.MaintenanceWindow.IsZero() || db.MaintenanceWindow.Next(now).After(now) || db.Operation != "" || s.IsAsleep(db.ID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, minorSearch)
	defer cancel()
	bin, ok := s.Majors.Newest(ctx, db.Major)
	if !ok || !binaries.Newer(bin.Version, db.Version) || !s.maySuspend() || !s.minors.first(db.ID, bin.Version) {
		return nil
	}
	call := s.core.System(model.ActionDatabaseRestart, db.Organization, DatabaseResource(db))
	claimed, release, err := s.ClaimExclusively(call, db.ID, "a restart")
	if err != nil {
		s.minors.forget(db.ID)
		if model.CodeOf(err) == model.CodeConflict { // a start, for example
			return nil
		}
		return err
	}
	defer release()
	s.core.Log.Info("restarting for a newer minor version of PostgreSQL", "database", db.ID, "from", db.Version, "to", bin.Version)
	call.Note("from", db.Version)
	call.Note("to", bin.Version)
	_, err = s.restartClaimed(ctx, call, claimed)
	return err
}

// minorSearch bounds the search for a newer version. The restart has its own limits.
const minorSearch = 30 * time.Second
