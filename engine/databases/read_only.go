package databases

import (
	"context"

	"holdfast/engine/model"
)

// readOnlySetting makes the transactions of all tenants read-only, unless a session
// says otherwise.
const readOnlySetting = "default_transaction_read_only"

// MakeReadOnly restarts every running database with read-only transactions, after
// the appliance became read-only.
func (s *Service) MakeReadOnly(ctx context.Context) {
	databases, err := s.KeptDatabases()
	if err != nil {
		s.core.Log.Error("list databases to make read-only", "error", err)
		return
	}
	for _, db := range databases {
		if status, _ := s.LiveStatus(db); status != model.DatabaseAvailable {
			continue
		}
		if err := s.applySettings(ctx, db); err != nil && ctx.Err() == nil {
			s.core.Log.Error("make a database read-only", "database", db.ID, "error", err)
		}
	}
}
