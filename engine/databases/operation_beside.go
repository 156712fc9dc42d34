package databases

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// InsertBeside inserts an operation that runs beside others on its database, whose
// record does not name it.
func InsertBeside(tx *meta.Tx, op model.DatabaseOperation) error {
	if err := tx.Operations().Insert(op); err != nil {
		return err
	}
	db, err := tx.Databases().Get(op.Database)
	if err != nil {
		return err
	}
	return forgetOperations(tx, db)
}

// CloseBeside is CloseOperation for such an operation, which is gone if its database is.
func (s *Service) CloseBeside(tx *meta.Tx, id string, cause error) error {
	err := s.CloseOperation(tx, id, cause)
	if errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	return err
}

// RecoverBeside ends the operations of a type that were running when the appliance
// stopped, and returns those that were cancelled.
func (s *Service) RecoverBeside(tx *meta.Tx, t model.OperationType, cause error) (cancelled []model.DatabaseOperation, err error) {
	running, err := tx.Operations().Where(func(o model.DatabaseOperation) bool { return o.Type == t && !o.Status.Final() })
	for _, op := range running {
		if err != nil {
			return nil, err
		}
		if err = s.CloseOperation(tx, op.ID, cause); err == nil && op.CancelledBy != nil {
			op, err = tx.Operations().Get(op.ID)
			cancelled = append(cancelled, op)
		}
	}
	return cancelled, err
}
