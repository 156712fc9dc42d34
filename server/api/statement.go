package api

import (
	"context"
	"strconv"

	"holdfast/engine/insight"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/server/api/wire"
)

const pageBytes = 8192 // of PostgreSQL

type statementListInput struct {
	DatabaseInput
	Order wire.StatementOrder `query:"order" default:"total_time" doc:"What the statements are sorted by, the largest first."`
}

func (h *handlers) statementList(ctx context.Context, call *model.Call, in *statementListInput) (wire.StatementList, error) {
	found, err := h.engine.Insight.Statements(ctx, call, in.ID, insight.StatementOrder(in.Order))
	return wire.StatementList{
		Enabled: found.Enabled, Enable: orAbsent(found.Enable), Since: utcOrAbsent(found.Since), Statements: convert(found.Statements, newStatement),
	}, err
}

func newStatement(s insight.Statement) wire.Statement {
	view := wire.Statement{
		ID: strconv.FormatInt(s.ID, 10), Text: s.Text, Truncated: s.Cut, User: s.User, Calls: int64(s.Calls), TotalMS: s.TotalMS,
		MeanMS: s.MeanMS(), MaxMS: s.MaxMS, Rows: s.Rows, TempWrittenBytes: s.TempWritten * pageBytes,
	}
	if ratio, known := s.HitRatio(); known {
		view.HitRatio = &ratio
	}
	return view
}

type statementResetInput struct {
	DatabaseInput
	Body *NoFields
}

func (h *handlers) statementReset(ctx context.Context, call *model.Call, in *statementResetInput) (wire.ResetStatements, error) {
	forgotten, err := h.engine.Insight.StatementsReset(ctx, call, in.ID)
	return wire.ResetStatements{Forgotten: forgotten}, err
}

type explainInput struct {
	DatabaseInput
	Body wire.ExplainStatement
}

func (h *handlers) statementExplain(ctx context.Context, call *model.Call, in *explainInput) (wire.StatementPlan, error) {
	statement, plan, err := h.engine.Insight.Explain(ctx, call, in.ID, insight.Explained{Statement: text(in.Body.Statement), ID: text(in.Body.StatementID)})
	return wire.StatementPlan{Statement: statement, Plan: plan}, err
}

func (h *handlers) lockList(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.LockList, error) {
	all, err := h.engine.Databases.Locks(ctx, call, in.ID)
	return wire.LockList{Locks: convert(all, newLockedSession)}, err
}

func newLockedSession(s postgres.LockedSession) wire.LockedSession {
	return wire.LockedSession{
		Session: NewDatabaseSession(s.Session), Depth: s.Depth, BlockedBy: convert(s.BlockedBy, postgres.SessionID.String), Others: s.Other,
		Mode: orAbsent(s.Mode), Kind: orAbsent(s.Kind), Relation: orAbsent(s.Relation),
	}
}

func (h *handlers) relationList(ctx context.Context, call *model.Call, in *DBNameInput) (wire.RelationList, error) {
	tables, indexes, err := h.engine.Insight.Relations(ctx, call, in.ID, in.DBName)
	return wire.RelationList{
		Tables: convert(tables, newTableSize),
		Indexes: convert(indexes, func(x insight.IndexSize) wire.IndexSize {
			return wire.IndexSize{
				Schema: x.Schema, Table: x.Table, Name: x.Name, SizeBytes: x.Size, BloatBytes: x.Bloat, Scans: x.Scans, Unique: x.Unique, Valid: x.Valid, Unused: x.Unused,
			}
		}),
	}, err
}

func newTableSize(t insight.TableSize) wire.TableSize {
	view := wire.TableSize{
		Schema: t.Schema, Name: t.Name, TotalBytes: t.Total, TableBytes: t.Table, TOASTBytes: t.TOAST, IndexBytes: t.Indexes, BloatBytes: t.Bloat,
		DeadRows: t.DeadRows, LastVacuumAt: utcOrAbsent(t.LastVacuum), LastAnalyzeAt: utcOrAbsent(t.LastAnalyze),
		SequentialScans: t.SequentialScans, IndexScans: t.IndexScans,
	}
	if t.Rows >= 0 {
		view.EstimatedRows = &t.Rows
	}
	return view
}
