package api

import (
	"context"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server/api/wire"
)

// NewRLSTable returns the wire form of a table.
func NewRLSTable(t postgres.Table) wire.RLSTable {
	view := wire.RLSTable{
		Schema: t.Schema, Table: t.Name, Owner: t.Owner, RLSEnabled: t.RLSEnabled, RLSForced: t.RLSForced,
		Policies: convert(t.Policies, func(p postgres.Policy) wire.RLSPolicy {
			return wire.RLSPolicy{
				Name: p.Name, Command: wire.RLSCommand(p.Command), Permissive: p.Permissive, Roles: append([]string{}, p.Roles...),
				Using: p.Using, WithCheck: p.WithCheck,
			}
		}),
		Warning: rlsWarning(t),
	}
	if t.EstimatedRows >= 0 {
		view.EstimatedRows = &t.EstimatedRows
	}
	return view
}

func rlsWarning(t postgres.Table) *wire.RLSWarning {
	var warning wire.RLSWarning
	switch {
	case t.RLSEnabled && len(t.Policies) == 0:
		warning = wire.RLSEnabledWithoutPolicy
	case !t.RLSEnabled && len(t.Policies) > 0:
		warning = wire.RLSPoliciesButDisabled
	case !t.RLSEnabled:
		warning = wire.RLSDisabled
	default:
		return nil
	}
	return &warning
}

// NewRLS returns the wire form of the row-level security of a database's tables.
func NewRLS(tables []postgres.Table) wire.RLS {
	view := wire.RLS{Tables: convert(tables, NewRLSTable), Summary: wire.RLSSummary{Total: len(tables)}}
	for _, t := range tables {
		if t.RLSEnabled {
			view.Summary.Enabled++
		}
		if t.RLSForced {
			view.Summary.Forced++
		}
		if t.RLSEnabled && len(t.Policies) == 0 {
			view.Summary.WithoutPolicy++
		}
	}
	return view
}

func (h *handlers) rlsGet(ctx context.Context, call *model.Call, in *DBNameInput) (wire.RLS, error) {
	tables, err := h.engine.Databases.RLSGet(ctx, call, in.ID, in.DBName)
	return NewRLS(tables), err
}

type setRLSInput struct {
	DatabaseInput
	Body wire.SetRLS
}

func (h *handlers) rlsSet(ctx context.Context, call *model.Call, in *setRLSInput) (wire.RLSTable, error) {
	change := databases.RLSChange{Table: in.Body.Table, Enabled: in.Body.Enabled, Force: in.Body.Force}
	if in.Body.Schema != nil {
		change.Schema = *in.Body.Schema
	}
	table, err := h.engine.Databases.RLSSet(ctx, call, in.ID, change)
	return NewRLSTable(table), err
}
