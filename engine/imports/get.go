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
		list.Items[i] = s.running.current(record)
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
	return s.running.current(record), nil
}

// runningImports holds the accounts of running imports by the ids of imports and
// operations, and the sizes of the sources of admitted imports by the ids of the
// new databases.
type runningImports struct {
	admission sync.Mutex // held while one import is admitted

	mu       sync.Mutex
	accounts map[string]*importer.Account
	sizes    map[string]int64
}

func newRunning() *runningImports {
	return &runningImports{accounts: map[string]*importer.Account{}, sizes: map[string]int64{}}
}

func (r *runningImports) add(account *importer.Account, ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.accounts[id] = account
	}
}

func (r *runningImports) drop(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.accounts, id)
		delete(r.sizes, id)
	}
}

// reserve notes the size of the source that is copied into the database.
func (r *runningImports) reserve(database string, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sizes[database] = size
}

func (r *runningImports) reserved() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.sizes)
}

// Reserved returns the sizes in bytes of the sources of the imports under way,
// by the database each one fills.
func (s *Service) Reserved() map[string]int64 { return s.running.reserved() }

// current returns the record with the present progress of its import.
func (r *runningImports) current(record model.Import) model.Import {
	if account, ok := r.get(record.ID); ok && !record.Status.Final() {
		return account.Snapshot()
	}
	return record
}

// Operation sets the phase and the progress of op if it is an import under way.
func (s *Service) Operation(op *model.DatabaseOperation) {
	if account, ok := s.running.get(op.ID); ok {
		now := account.Snapshot()
		op.Phase, op.Progress = now.Phase, now.Progress
	}
}

func (r *runningImports) get(id string) (*importer.Account, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	account, ok := r.accounts[id]
	return account, ok
}
