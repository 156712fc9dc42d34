package recovery

import (
	"context"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ExportPath is the path below which exports are downloaded, outside the API.
const ExportPath = "/exports/"

// ExportView is an export as a client sees it.
type ExportView struct {
	model.Export
	DownloadPath string // signed; "" until the export is ready
	ExpiresAt    time.Time
	Newer        *model.Export // follows a newer backup or request; nil for none
}

// ExportGet returns the newest export of the database dbname that is ready, with the one
// that will replace it, or else the newest of any status.
func (s *Service) ExportGet(call *model.Call, database, dbname string) (ExportView, error) {
	db, err := s.databases.Database(call, database)
	if err != nil {
		return ExportView{}, err
	}
	found, err := s.exports(db)
	if err != nil {
		return ExportView{}, err
	}
	beside := databases.Beside(db, dbname)
	view, exists := found[beside]
	if !exists {
		return ExportView{}, s.noExport(db, beside)
	}
	call.Resource = model.Resource{Type: model.ResourceExport, ID: view.ID, Name: view.Filename}
	return view, nil
}

// ExportsBeside returns by name what [Service.ExportGet] returns of each database beside the tenant's.
func (s *Service) ExportsBeside(call *model.Call, database string) (map[string]ExportView, error) {
	db, err := s.databases.Database(call, database)
	if err != nil {
		return nil, err
	}
	found, err := s.exports(db)
	delete(found, "")
	return found, err
}

// exports returns by name the newest export that is ready, or else the newest of any status.
func (s *Service) exports(db model.Database) (map[string]ExportView, error) {
	all, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Export, error) { return core.AllUnder(tx.Exports(), db.ID) })
	found := map[string]ExportView{}
	for _, x := range all { // the newest first
		newest, known := found[x.DBName]
		if !known {
			found[x.DBName] = s.exportView(x)
		} else if isReady(x) && !isReady(newest.Export) {
			view := s.exportView(x)
			view.Newer = &newest.Export
			found[x.DBName] = view
		}
	}
	return found, err
}

func isReady(x model.Export) bool { return x.Status == model.ExportReady }

func (s *Service) noExport(db model.Database, beside string) error {
	if db.Sandbox {
		return model.Errorf(model.CodeNotFound, "no export has been made: %s is a sandbox, which has neither backups nor exports", db.Name)
	}
	if !s.core.Config.Exports {
		return model.Errorf(model.CodeNotFound, "no export has been made: the operator has turned exports off (--no-exports)")
	}
	if beside != "" {
		return model.Errorf(model.CodeNotFound, "dbname: no export of a database %q beside %s has been made; one is made when it is asked for, of those that the list of its databases names",
			beside, db.Name)
	}
	return model.Errorf(model.CodeNotFound, "no export has been made yet: one follows each completed backup, or is made when it is asked for")
}

func (s *Service) exportView(x model.Export) ExportView {
	view := ExportView{Export: x}
	if isReady(x) {
		view.ExpiresAt = s.core.Clock().Add(core.DownloadLife)
		view.DownloadPath = s.core.Signer.SignedPath(ExportPath+x.ID, ExportSubject(x.ID), view.ExpiresAt)
	}
	return view
}

// ExportSubject identifies an export's download in a signature.
func ExportSubject(id string) string { return "export " + id }

// ExportDownload is an export with its bytes. The caller closes Content.
type ExportDownload struct {
	model.Export
	Content *blobstore.Reader
}

// ExportDownload opens an export by its signed URL; target is the URL exactly as
// requested. A missing export gives the same error as an unauthorized request.
func (s *Service) ExportDownload(ctx context.Context, call *model.Call, id, target string) (ExportDownload, error) {
	call.Resource = model.Resource{Type: model.ResourceExport, ID: id}
	if !s.core.Signer.Admits(ExportPath+id, ExportSubject(id), target, s.core.Clock()) {
		return ExportDownload{}, model.NotFound(model.ResourceExport, id)
	}
	call.Actor = model.DownloadLink()
	x, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Export, error) { return tx.Exports().Get(id) })
	if err != nil || !isReady(x) {
		return ExportDownload{}, model.NotFound(model.ResourceExport, id)
	}
	call.Organization, call.Resource.Name = x.Organization, x.Filename
	content, err := s.core.Blobs.Open(ctx, blobstore.Ref(x.Blob))
	if err != nil { // a newer export has replaced it
		return ExportDownload{}, model.NotFound(model.ResourceExport, id)
	}
	return ExportDownload{Export: x, Content: content}, nil
}
