package databases

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// sessionTimeout bounds a question about sessions.
const sessionTimeout = 10 * time.Second

// SessionList returns the tenants' sessions in a database, the oldest first. Only a
// caller who may change the database sees their statements, which may hold secrets.
func (s *Service) SessionList(ctx context.Context, call *model.Call, id string) ([]postgres.Session, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return nil, err
	}
	if s.IsAsleep(db.ID) {
		return nil, nil
	}
	var sessions []postgres.Session
	err = s.aboutSessions(ctx, db, func(ctx context.Context, conn *pgx.Conn) (err error) {
		sessions, err = postgres.Sessions(ctx, conn)
		return err
	})
	s.proxies.showClients(db.ID, sessions)
	if !call.Holds(model.ScopeDatabaseUpdate) {
		for i := range sessions {
			sessions[i].Query = ""
		}
	}
	return sessions, err
}

// SessionCancel cancels what a tenant's session executes; the session goes on.
func (s *Service) SessionCancel(ctx context.Context, call *model.Call, id, session string) error {
	return s.signalSession(ctx, call, id, session, postgres.CancelSession)
}

// SessionTerminate ends a tenant's session, and reports whether it has ended.
func (s *Service) SessionTerminate(ctx context.Context, call *model.Call, id, session string) (ended bool, err error) {
	return ended, s.signalSession(ctx, call, id, session, func(ctx context.Context, conn *pgx.Conn, id postgres.SessionID) (err error) {
		ended, err = postgres.TerminateSession(ctx, conn, id)
		return err
	})
}

func (s *Service) signalSession(
	ctx context.Context, call *model.Call, id, session string, signal func(context.Context, *pgx.Conn, postgres.SessionID) error,
) error {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return err
	}
	db, err := s.Database(call, id)
	if err != nil {
		return err
	}
	call.Note("session", session)
	named, err := postgres.ParseSessionID(session)
	if err == nil && s.IsAsleep(db.ID) {
		err = postgres.ErrNoSession
	}
	if err == nil {
		err = s.aboutSessions(context.WithoutCancel(ctx), db, func(ctx context.Context, conn *pgx.Conn) error {
			return signal(ctx, conn, named)
		})
	}
	if errors.Is(err, postgres.ErrNoSession) {
		return model.Errorf(model.CodeNotFound, "the database has no session %q: it has ended, or never was", session)
	}
	if err != nil {
		return err
	}
	return s.core.Change(call, func(*meta.Tx) error { return nil })
}

// aboutSessions runs act in a session of the appliance's own role, if the database is
// available.
func (s *Service) aboutSessions(ctx context.Context, db model.Database, act func(context.Context, *pgx.Conn) error) error {
	if err := s.RefuseUnavailable(db); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	return ServerFailed(s.maintain(ctx, db.ID, act))
}
