package imports

import (
	"errors"
	"maps"
	"sync"

	"holdfast/engine/core"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// List returns the imports of the call's organization.
func (s *Service) List(call *model.Call, page core.Page) (core.List[model.Import], error) {
	list, err := core.ListRecords(s.core, s.core.Meta.View, call, model.ActionImportList, (*meta.Tx).Imports, page,
		func(i model.Import) string { return i.ID })
	for i, record := range list.Items {
		list.Items[i] = s.Imports.now(record)
	}
	return list, err
}

// Get returns one import.
func (s *Service) Get(call *model.Call, id string) (model.Import, error) {
	call.Resource = model.Resource{Type: model.ResourceImport, ID: id}
	var record model.Import
	err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		record, err = tx.Imports().Get(id)
		return err
	})
	if errors.Is(err, meta.ErrNotFound) || err == nil && record.Organization != call.Organization {
		return model.Import{}, model.NotFound(model.ResourceImport, id)
	}
	if err != nil {
		return model.Import{}, err
	}
	call.Resource.Name = record.Name
	return s.Imports.now(record), nil
}

// RunningImports are the accounts of what runs, by the ids of imports and of
// their operations, and the sizes of their sources, where they were let in, by
// the ids of the new databases.
type RunningImports struct {
	admission sync.Mutex // held while it is seen whether there is room for one more

	mu       sync.Mutex
	accounts map[string]*importer.Account
	sizes    map[string]int64
}

func newRunningImports() *RunningImports {
	return &RunningImports{accounts: map[string]*importer.Account{}, sizes: map[string]int64{}}
}

func (r *RunningImports) add(account *importer.Account, ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.accounts[id] = account
	}
}

func (r *RunningImports) Drop(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.accounts, id)
		delete(r.sizes, id)
	}
}

// Reserve notes how large the database is that is copied into another.
func (r *RunningImports) Reserve(database string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sizes[database] = size
}

func (r *RunningImports) reserved() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.sizes)
}

// Reserved returns the sizes in bytes of the sources of the imports under way,
// by the database each one fills.
func (s *Service) Reserved() map[string]int64 { return s.Imports.reserved() }

// now returns the record as it is at this moment.
func (r *RunningImports) now(record model.Import) model.Import {
	if account, ok := r.get(record.ID); ok && !record.Status.Final() {
		return account.Snapshot()
	}
	return record
}

// Operation sets the phase and the progress of op if it is an import under way.
func (s *Service) Operation(op *model.DatabaseOperation) {
	if account, ok := s.Imports.get(op.ID); ok {
		now := account.Snapshot()
		op.Phase, op.Progress = now.Phase, now.Progress
	}
}

func (r *RunningImports) get(id string) (*importer.Account, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	account, ok := r.accounts[id]
	return account, ok
}
