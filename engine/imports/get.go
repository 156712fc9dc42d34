package imports

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Filter selects imports. An empty field selects all.
type Filter struct {
	core.Filter
	Database string // id
	Status   model.ImportStatus
}

func (f Filter) admits(i model.Import) bool {
	return f.Admits(i.Project, i.Name, i.StartedAt) && core.Equals(f.Database, i.Database) && core.Equals(f.Status, i.Status)
}

// List returns the imports of the call's organization that match the filter.
func (s *Service) List(call *model.Call, filter Filter, page core.Page) (core.List[model.Import], error) {
	list, err := core.ListRecords(s.core, s.core.Meta.View, call, model.ActionImportList, (*meta.Tx).Imports, page,
		core.Select(filter, func(i model.Import) bool { return filter.admits(s.current(i)) }))
	for i, record := range list.Items {
		list.Items[i] = s.current(record)
	}
	return list, err
}

// Get returns one import.
func (s *Service) Get(call *model.Call, id string) (model.Import, error) {
	call.Resource = model.Resource{Type: model.ResourceImport, ID: id}
	record, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Import, error) { return tx.Imports().Get(id) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && record.Organization != call.Organization {
		return model.Import{}, model.NotFound(model.ResourceImport, id)
	}
	if err != nil {
		return model.Import{}, err
	}
	call.Resource.Name = record.Name
	return s.current(record), nil
}

// Reserved returns the sizes in bytes of the sources of the running imports, by the database that each one fills.
func (s *Service) Reserved() map[string]int64 {
	sizes := map[string]int64{}
	for database, size := range s.sizes.Range {
		sizes[database.(string)] = size.(int64)
	}
	return sizes
}

// current returns the record with the current progress of its import.
func (s *Service) current(record model.Import) model.Import {
	if account := s.account(record.ID); account != nil && !record.Status.Final() {
		return account.Snapshot()
	}
	return record
}

// Operation sets the phase and the progress of op if it is a running import.
func (s *Service) Operation(op *model.DatabaseOperation) {
	if account := s.account(op.ID); account != nil {
		now := account.Snapshot()
		op.Phase, op.Progress = now.Phase, now.Progress
	}
}

// account returns the account of a running import by the id of the import or its operation, nil if it is not running.
func (s *Service) account(id string) *importer.Account {
	found, _ := s.accounts.Load(id)
	account, _ := found.(*importer.Account)
	return account
}
