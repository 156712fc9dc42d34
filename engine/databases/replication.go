package databases

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/connstring"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Replication is the state of a database's logical replication.
type Replication struct {
	Enabled bool
	// Retain is the most WAL that a slot retains, in bytes; 0 if replication is off.
	Retain       int64
	Slots        []postgres.Slot
	Publications []postgres.Publication
	// Connection is for the role that may replicate; nil if replication is off, or the
	// caller may not change the database.
	Connection *Connection
}

// Replication returns the slots and publications of a database and how its changes
// are streamed. Only a caller who may change the database sees the password, which
// reads everything.
func (s *Service) Replication(ctx context.Context, call *model.Call, id string) (Replication, error) {
	db, err := s.Database(call, id)
	if err != nil {
		return Replication{}, err
	}
	r := Replication{Enabled: db.LogicalReplication}
	err = s.awake(db, func() error {
		return ServerFailed(s.inTenantDatabase(ctx, db, func(ctx context.Context, conn *pgx.Conn) (err error) {
			if r.Slots, err = postgres.Slots(ctx, conn, WALSlot); err != nil {
				return err
			}
			if r.Publications, err = postgres.Publications(ctx, conn); err != nil || !db.LogicalReplication {
				return err
			}
			r.Retain, err = postgres.SlotLimit(ctx, conn)
			return err
		}))
	})
	if err != nil {
		return r, err
	}
	if db.LogicalReplication && call.Holds(model.ScopeDatabaseUpdate) {
		tenant, err := s.tenant(db)
		if err != nil {
			return r, err
		}
		r.Connection = &Connection{CACertificate: s.CA.PEM(), Target: connstring.Target{
			Host: s.core.Config.PublicHost, Port: db.Port, Database: db.Name, User: tenant.Replication, Password: tenant.ReplicationPassword,
		}}
	}
	return r, nil
}

// ReplicationSlotDrop drops a slot, whose client has to copy everything again. With force it
// ends the client that reads it.
func (s *Service) ReplicationSlotDrop(ctx context.Context, call *model.Call, id, slot string, force bool) error {
	db, err := s.Database(call, id)
	if err != nil {
		return err
	}
	call.Note("slot", slot)
	err = s.awake(db, func() error {
		return s.aboutSessions(context.WithoutCancel(ctx), db, func(ctx context.Context, conn *pgx.Conn) error {
			return postgres.DropSlot(ctx, conn, WALSlot, slot, force)
		})
	})
	switch {
	case errors.Is(err, postgres.ErrNoSlot):
		return model.Errorf(model.CodeNotFound, "the database has no replication slot %q", slot)
	case errors.Is(err, postgres.ErrSlotActive):
		return model.Errorf(model.CodeConflict, "a client reads the replication slot %q: stop it first, or drop the slot by force, which ends its session", slot)
	case err != nil:
		return err
	}
	return s.core.Change(call, func(*meta.Tx) error { return nil })
}
