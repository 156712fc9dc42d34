package api

import (
	"fmt"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewImport returns the wire form of an import, without its log.
func NewImport(i model.Import) wire.Import {
	view := wire.Import{
		ID: i.ID, DatabaseID: i.Database, Project: i.Project, Name: i.Name,
		Source: wire.ImportSource{
			Host: i.Source.Host, Port: i.Source.Port, Database: i.Source.Database, User: i.Source.User,
			ServerVersion: orAbsent(i.Source.Version),
		},
		Mode: wire.ImportCopy, Status: wire.ImportStatus(i.Status), Phase: i.Phase, ProgressPercent: i.Progress, EstimatedSecondsRemaining: i.SecondsLeft,
		Tables: wire.ImportTables{Total: i.TablesTotal, Done: i.TablesDone}, RowsCopied: i.RowsCopied, BytesCopied: i.BytesCopied,
		MissingExtensions: append([]string{}, i.MissingExts...), RolesLeftOut: convert(i.Roles, newImportRole), Errors: convert(i.Errors, newImportFlaw),
		StartedAt: utc(i.StartedAt), CompletedAt: utcOrAbsent(i.CompletedAt), Error: orAbsent(i.Error),
	}
	if i.Follow != nil {
		view.Mode, view.Following = wire.ImportFollow, newImportFollowing(*i.Follow)
	}
	if i.ErrorsBeyond > 0 {
		view.Errors = append(view.Errors, wire.ImportFlaw{Object: "others", Message: fmt.Sprintf("%d more are not listed", i.ErrorsBeyond)})
	}
	return view
}

func newImportFollowing(f model.ImportFollow) *wire.ImportSubscription {
	view := &wire.ImportSubscription{
		Publication: f.Publication, Slot: f.Slot, NotFollowed: append([]string{}, f.NotFollowed...),
		StaleViews: convert(f.StaleViews, newStaleView), Trouble: orAbsent(f.Trouble),
	}
	if lag := f.Lag; lag != nil {
		view.LagBytes, view.LagSeconds, view.RetainedBytes, view.MeasuredAt = &lag.Bytes, &lag.Seconds, &lag.Retained, utcOrAbsent(&lag.At)
	}
	if f.Pause > 0 {
		seconds := f.Pause.Seconds()
		view.PauseSeconds = &seconds
	}
	return view
}

func newStaleView(v model.StaleView) wire.StaleView {
	return wire.StaleView{Name: v.Name, Since: utc(v.Since), Message: v.Message}
}

// NewImportDetail returns the wire form of an import with its log.
func NewImportDetail(i model.Import) wire.ImportDetail {
	return wire.ImportDetail{Import: NewImport(i), Log: convert(i.Log, newImportLine)}
}

func newImportRole(r model.ImportRole) wire.ImportRole {
	return wire.ImportRole{Name: r.Name, Grants: r.Grants}
}

func newImportFlaw(f model.ImportFlaw) wire.ImportFlaw {
	return wire.ImportFlaw{Object: f.Object, SQLState: orAbsent(f.SQLState), Message: f.Message}
}

func newImportLine(l model.ImportLine) wire.ImportLine {
	return wire.ImportLine{At: utc(l.At), Level: wire.ImportLevel(l.Level), Message: l.Message}
}
