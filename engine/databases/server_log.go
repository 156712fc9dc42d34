package databases

import (
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// logTail is how much of a server's log is shown, in bytes.
const logTail = 48 << 10

// ServerLog returns the last lines of the database's server log, oldest first. They
// may contain data from the tenants' statements.
func (s *Service) ServerLog(call *model.Call, id string) ([]string, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	text, err := postgres.ReadLog(s.DataDirectory(db.ID, db.Generation), logTail)
	if err != nil || text == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}
