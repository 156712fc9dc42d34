package api

import (
	"context"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// RLS is the row-level security of every table of a database.
type RLS struct {
	Tables  []RLSTable `json:"tables"`
	Summary RLSSummary `json:"summary"`
}

// RLSTable is one table with its row-level security.
type RLSTable struct {
	Schema        string      `json:"schema"`
	Table         string      `json:"table"`
	Owner         string      `json:"owner"`
	RLSEnabled    bool        `json:"rls_enabled"`
	RLSForced     bool        `json:"rls_forced" doc:"Whether it holds for the table's owner too."`
	EstimatedRows *int64      `json:"estimated_rows" doc:"PostgreSQL's own estimate; null before its first."`
	Policies      []RLSPolicy `json:"policies"`
	Warning       *RLSWarning `json:"warning"`
}

// RLSPolicy is one policy, as pg_policies shows it.
type RLSPolicy struct {
	Name       string     `json:"name"`
	Command    RLSCommand `json:"command"`
	Permissive bool       `json:"permissive"`
	Roles      []string   `json:"roles"`
	Using      *string    `json:"using" doc:"Cut, with … at its end, when it is long."`
	WithCheck  *string    `json:"with_check" doc:"Cut like using."`
}

// RLSSummary counts the tables.
type RLSSummary struct {
	Total         int `json:"total"`
	Enabled       int `json:"enabled"`
	Forced        int `json:"forced"`
	WithoutPolicy int `json:"without_policy" doc:"Tables with row-level security and no policy: nobody but their owner sees a row."`
}

// NewRLSTable returns the wire form of a table.
func NewRLSTable(t postgres.Table) RLSTable {
	view := RLSTable{
		Schema: t.Schema, Table: t.Name, Owner: t.Owner, RLSEnabled: t.RLSEnabled, RLSForced: t.RLSForced,
		Policies: convert(t.Policies, func(p postgres.Policy) RLSPolicy {
			return RLSPolicy{
				Name: p.Name, Command: RLSCommand(p.Command), Permissive: p.Permissive, Roles: append([]string{}, p.Roles...),
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

func rlsWarning(t postgres.Table) *RLSWarning {
	var warning RLSWarning
	switch {
	case t.RLSEnabled && len(t.Policies) == 0:
		warning = "enabled_without_policy"
	case !t.RLSEnabled && len(t.Policies) > 0:
		warning = "policies_but_disabled"
	case !t.RLSEnabled:
		warning = "rls_disabled"
	default:
		return nil
	}
	return &warning
}

// NewRLS returns the wire form of a database's tables.
func NewRLS(tables []postgres.Table) RLS {
	view := RLS{Tables: convert(tables, NewRLSTable), Summary: RLSSummary{Total: len(tables)}}
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

func (h *handlers) rlsGet(ctx context.Context, call *model.Call, in *DatabaseInput) (RLS, error) {
	tables, err := h.engine.Databases.RLSGet(ctx, call, in.ID)
	return NewRLS(tables), err
}

// SetRLS turns row-level security of one table on or off.
type SetRLS struct {
	Table   string  `json:"table" minLength:"1" maxLength:"63"`
	Schema  *string `json:"schema" required:"false" minLength:"1" maxLength:"63" doc:"public when left out."`
	Enabled bool    `json:"enabled"`
	Force   *bool   `json:"force" required:"false" doc:"Whether it holds for the table's owner too; as it is when left out."`
}

type setRLSInput struct {
	DatabaseInput
	Body SetRLS
}

func (h *handlers) rlsSet(ctx context.Context, call *model.Call, in *setRLSInput) (RLSTable, error) {
	change := databases.RLSChange{Table: in.Body.Table, Enabled: in.Body.Enabled, Force: in.Body.Force}
	if in.Body.Schema != nil {
		change.Schema = *in.Body.Schema
	}
	table, err := h.engine.Databases.RLSSet(ctx, call, in.ID, change)
	return NewRLSTable(table), err
}
