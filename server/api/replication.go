package api

import (
	"context"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server/api/wire"
)

func (h *handlers) replicationGet(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.Replication, error) {
	r, err := h.engine.Databases.Replication(ctx, call, in.ID)
	if err != nil {
		return wire.Replication{}, err
	}
	replication := wire.Replication{
		Enabled: r.Enabled, SlotLimitBytes: orAbsent(r.Retain),
		Slots: convert(r.Slots, newReplicationSlot), Publications: convert(r.Publications, newPublication),
	}
	if c := r.Connection; c != nil {
		replication.Connection = &wire.ReplicationLogin{
			Host: c.Host, Port: c.Port, Database: c.Database, User: c.User, Password: c.Password.Reveal(), SSLMode: wire.SSLMode(c.SSLMode()),
			ConnectionURL: c.URL(), Conninfo: c.Conninfo(), CACertificate: c.CACertificate,
		}
	}
	return replication, nil
}

func newReplicationSlot(s postgres.Slot) wire.ReplicationSlot {
	return wire.ReplicationSlot{
		Name: s.Name, Plugin: orAbsent(s.Plugin), Temporary: s.Temporary, Active: s.Active,
		LagBytes: s.Lag, RetainedBytes: s.Retained, WALStatus: s.Status, SafeWALBytes: s.Safe,
	}
}

func newPublication(p postgres.Publication) wire.Publication {
	return wire.Publication{Name: p.Name, Owner: p.Owner, AllTables: p.AllTables, Tables: p.Tables, WithoutIdentity: p.Unidentified}
}

type replicationSlotInput struct {
	DatabaseInput
	Slot  string `path:"slot" doc:"Name of the replication slot." example:"debezium"`
	Force bool   `query:"force" doc:"Whether to end the session that reads it; without it such a slot is refused."`
}

func (h *handlers) replicationSlotDrop(ctx context.Context, call *model.Call, in *replicationSlotInput) (wire.DroppedSlot, error) {
	err := h.engine.Databases.ReplicationSlotDrop(ctx, call, in.ID, in.Slot, in.Force)
	return wire.DroppedSlot{Name: in.Slot, Dropped: true}, err
}
