package databases

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// OperationFilter selects operations. An empty field selects all.
type OperationFilter struct {
	core.Filter
	Database string // id
	Type     model.OperationType
	Status   model.OperationStatus
}

func (f OperationFilter) admits(op model.DatabaseOperation) bool {
	return f.Admits("", "", op.StartedAt) && core.Equals(f.Database, op.Database) && core.Equals(f.Type, op.Type) && core.Equals(f.Status, op.Status)
}

// OperationList returns the operations of the call's organization that match the
// filter, ended ones included.
func (s *Service) OperationList(call *model.Call, filter OperationFilter, page core.Page) (core.List[model.DatabaseOperation], error) {
	list, err := core.ListRecords(s.core, s.core.Meta.View, call, model.ActionOperationList, (*meta.Tx).Operations, page,
		core.Select(filter, filter.admits))
	for i := range list.Items {
		s.withProgress(&list.Items[i])
	}
	return list, err
}

// OperationGet returns one operation.
func (s *Service) OperationGet(call *model.Call, id string) (model.DatabaseOperation, error) {
	call.Resource = model.Resource{Type: model.ResourceOperation, ID: id}
	op, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.DatabaseOperation, error) {
		return operationOf(tx, call.Organization, id)
	})
	if err == nil {
		call.Resource.Name = string(op.Type)
		s.withProgress(&op)
	}
	return op, err
}

// operationOf returns an operation of an organization.
func operationOf(tx *meta.Tx, organization, id string) (model.DatabaseOperation, error) {
	op, err := tx.Operations().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && op.Organization != organization {
		return model.DatabaseOperation{}, model.NotFound(model.ResourceOperation, id)
	}
	return op, err
}

// withProgress sets the current progress of an operation.
func (s *Service) withProgress(op *model.DatabaseOperation) {
	if op.Status.Final() {
		return
	}
	op.Progress = s.Progress.Get(op.ID, op.Progress)
	s.imports.Operation(op)
}
