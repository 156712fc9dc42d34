package imports

import (
	"context"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Cutover ends the following: it waits until the new database has everything that the source has, which nobody may
// write to any more, carries over what does not follow, and opens the new database. If it is refused, the new database
// follows on. It returns the record with the measured pause.
func (s *Service) Cutover(ctx context.Context, call *model.Call, id string) (model.Import, error) {
	began := time.Now()
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Import{}, err
	}
	record, err := s.Get(call, id)
	if err != nil {
		return record, err
	}
	call.Note("database", record.Database)
	run, err := s.following(record)
	if err != nil {
		return record, err
	}
	request := &cutoverRequest{began: began, may: func() error { return s.core.CheckAuthority(call) }, answer: make(chan error, 1)}
	if err := s.ask(ctx, run, request); err != nil {
		return record, err
	}
	if err := s.core.Change(call, func(*meta.Tx) error { return nil }); err != nil {
		return record, err
	}
	return s.Get(call, id)
}

// following returns the run of an import that can be cut over.
func (s *Service) following(record model.Import) (*importRun, error) {
	found, _ := s.runs.Load(record.ID)
	run, running := found.(*importRun)
	switch {
	case record.Follow == nil:
		return nil, model.Errorf(model.CodeConflict, "the import only copies, and needs no cutover; a database follows its source when the import is started with the mode follow")
	case record.Status.Final():
		return nil, model.Errorf(model.CodeConflict, "the import is %s already", record.Status)
	case !running && record.Follow.Trouble != "":
		return nil, model.Errorf(model.CodeConflict, "the import cannot be cut over: %s", record.Follow.Trouble)
	case record.Status == model.ImportCuttingOver:
		return nil, model.Errorf(model.CodeConflict, "the import is being cut over already; wait for its end")
	case record.Status != model.ImportFollowing || !running:
		return nil, model.Errorf(model.CodeConflict, "the import is %s: it can be cut over when it is following; let the source write until then", record.Status)
	default:
		return run, nil
	}
}

// ask hands the request to the run and waits for the answer. The cutover continues if the client disconnects.
func (s *Service) ask(ctx context.Context, run *importRun, request *cutoverRequest) error {
	late := time.NewTimer(cutoverWait)
	defer late.Stop()
	select {
	case run.cutovers <- request:
	case <-run.over:
		return model.Errorf(model.CodeConflict, "the import has ended")
	case <-late.C:
		return model.Errorf(model.CodeConflict, "the import is busy; try again")
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-request.answer:
		return err
	case <-run.over:
		select {
		case err := <-request.answer:
			return err
		default:
			return core.ErrInterrupted
		}
	case <-late.C: // the record says how it goes on
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
