package recovery

import (
	"context"
	"slices"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
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
	Newer        *model.Export // follows a newer backup; nil for none
}

// ExportGet returns the newest export of a database that is ready, with the one
// that will replace it, or else the newest of any status.
func (s *Service) ExportGet(call *model.Call, database string) (ExportView, error) {
	db, err := s.databases.Database(call, database)
	if err != nil {
		return ExportView{}, err
	}
	all, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Export, error) { return core.AllUnder(tx.Exports(), database) })
	if err != nil {
		return ExportView{}, err
	}
	if len(all) == 0 {
		return ExportView{}, s.noExport(db)
	}
	x := all[0]
	if ready := slices.IndexFunc(all, isReady); ready > 0 {
		x = all[ready]
	}
	call.Resource = model.Resource{Type: model.ResourceExport, ID: x.ID, Name: x.Filename}
	view := s.exportView(x)
	if x.ID != all[0].ID {
		view.Newer = &all[0]
	}
	return view, nil
}

func isReady(x model.Export) bool { return x.Status == model.ExportReady }

func (s *Service) noExport(db model.Database) error {
	if db.Sandbox {
		return model.Errorf(model.CodeNotFound, "no export has been made: %s is a sandbox, which has neither backups nor exports", db.Name)
	}
	if !s.core.Config.Exports {
		return model.Errorf(model.CodeNotFound, "no export has been made: the operator has turned exports off (--no-exports)")
	}
	return model.Errorf(model.CodeNotFound, "no export has been made yet: one follows each completed backup, and POST …/export makes one now")
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
