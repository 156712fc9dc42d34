package databases

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// applyOrRestart runs act, which tenants' sessions can block. Almost all of them
// end when they are terminated, but a session deep in C code may not end for hours.
// In that case applyOrRestart restarts the server immediately and runs act again: a
// recorded change, such as a new password, is not reverted because of a session.
func (s *Service) applyOrRestart(ctx context.Context, instance string, act func(context.Context, *pgx.Conn) error) error {
	soon, cancel := context.WithTimeout(ctx, s.Timeouts.Sessions)
	defer cancel()
	err := s.maintain(soon, instance, act)
	if err == nil || soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	s.core.Log.Warn("sessions block a change and do not end: restarting the server at once", "database", instance, "error", err)
	if err := s.Instances.Restart(ctx, instance, 0); err != nil {
		return fmt.Errorf("end sessions that block a change: %w", err)
	}
	again, cancel := context.WithTimeout(ctx, s.Timeouts.Sessions)
	defer cancel()
	return s.maintain(again, instance, act)
}

// maintain runs act in a session of the appliance's own role.
func (s *Service) maintain(ctx context.Context, instance string, act func(context.Context, *pgx.Conn) error) error {
	conn, err := s.Instances.Connect(ctx, instance, Maintenance)
	if err != nil {
		return fmt.Errorf("connect to instance: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return act(ctx, conn)
}

// endSessions ends the tenants' open sessions, except those from the networks
// in allow, and returns how many it ended.
func (s *Service) endSessions(ctx context.Context, db model.Database, allow ...netip.Prefix) (int, error) {
	if s.IsAsleep(db.ID) {
		return 0, nil
	}
	if p := s.proxies.get(db.ID); p != nil && len(allow) > 0 {
		return s.endClients(ctx, db, p.Excluded())
	}
	ended := 0
	err := s.applyOrRestart(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		n, err := postgres.TerminateSessions(ctx, conn, allow...)
		ended += n
		return err
	})
	return ended, err
}
