package databases

import (
	"context"
	"time"

	"holdfast/engine/model"
)

// operationPoll is how often a wait looks at the record, which is in memory.
const operationPoll = 100 * time.Millisecond

// OperationWait returns an operation when it has ended, or after the longest wait, or
// when the appliance stops. It fails if too many requests wait already, or once the
// caller's authority has ended.
func (s *Service) OperationWait(ctx context.Context, call *model.Call, id string, longest time.Duration) (model.DatabaseOperation, error) {
	release, err := s.core.Watchers.Watch(call)
	if err != nil {
		return model.DatabaseOperation{}, err
	}
	defer release()
	timeout := time.NewTimer(longest)
	defer timeout.Stop()
	ticker := time.NewTicker(operationPoll)
	defer ticker.Stop()
	for {
		op, err := s.OperationGet(call, id)
		if err == nil {
			err = s.core.CheckAuthority(call)
		}
		if err != nil || op.Status.Final() {
			return op, err
		}
		select {
		case <-ticker.C:
		case <-timeout.C:
			return op, nil
		case <-ctx.Done():
			return op, nil
		case <-s.core.Watchers.Ended():
			return op, nil
		case <-s.core.Lifetime.Done():
			return op, nil
		}
	}
}
