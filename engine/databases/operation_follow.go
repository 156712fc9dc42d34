package databases

import (
	"context"
	"reflect"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// OperationFollow passes an operation to f whenever it has changed, first as it is now,
// until it has ended, ctx ends or the appliance stops. Progress is not recorded, so it
// is read at intervals from memory.
func (s *Service) OperationFollow(ctx context.Context, call *model.Call, id string, valid func() error, f func(model.DatabaseOperation) error, beat func() error) error {
	ticker := time.NewTicker(operationPoll)
	defer ticker.Stop()
	var last model.DatabaseOperation
	sent := time.Now()
	for {
		op, err := s.OperationGet(call, id)
		if err == nil {
			err = valid()
		}
		switch {
		case err != nil:
			return err
		case !reflect.DeepEqual(op, last):
			last, sent, err = op, time.Now(), f(op)
		case time.Since(sent) > core.Heartbeat:
			sent, err = time.Now(), beat()
		}
		if err != nil || op.Status.Final() {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		case <-s.core.Watchers.Ended():
			return nil
		case <-s.core.Lifetime.Done():
			return nil
		}
	}
}
