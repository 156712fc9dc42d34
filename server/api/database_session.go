package api

import (
	"context"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server/api/wire"
)

// NewDatabaseSession returns the wire form of a session.
func NewDatabaseSession(s postgres.Session) wire.DatabaseSession {
	return wire.DatabaseSession{
		ID: s.String(), PID: int(s.PID), User: s.User, Database: s.Database, Application: orAbsent(s.Application), ClientAddress: orAbsent(s.Address),
		State: orAbsent(s.State), StartedAt: utc(s.StartedAt), StateSince: utcOrAbsent(s.StateSince), TransactionSince: utcOrAbsent(s.TransactionSince),
		WaitType: orAbsent(s.WaitType), Wait: orAbsent(s.Wait), Query: orAbsent(s.Query),
	}
}

func (h *handlers) databaseSessionList(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.DatabaseSessions, error) {
	all, err := h.engine.Databases.SessionList(ctx, call, in.ID)
	return wire.DatabaseSessions{Sessions: convert(all, NewDatabaseSession)}, err
}

type databaseSessionInput struct {
	DatabaseInput
	SessionID string `path:"sessionId" doc:"Id of the session, from the list of sessions." example:"4711-1763900000000000"`
	Body      *NoFields
}

func (h *handlers) databaseSessionCancel(ctx context.Context, call *model.Call, in *databaseSessionInput) (wire.SignalledSession, error) {
	err := h.engine.Databases.SessionCancel(ctx, call, in.ID, in.SessionID)
	return wire.SignalledSession{ID: in.SessionID}, err
}

func (h *handlers) databaseSessionTerminate(ctx context.Context, call *model.Call, in *databaseSessionInput) (wire.SignalledSession, error) {
	ended, err := h.engine.Databases.SessionTerminate(ctx, call, in.ID, in.SessionID)
	return wire.SignalledSession{ID: in.SessionID, Ended: ended}, err
}
