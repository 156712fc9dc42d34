package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// cutoverRequest asks a running import for the cutover.
type cutoverRequest struct {
	began  time.Time
	may    func() error // whether the caller still may: a request may wait until it is taken up
	answer chan error   // buffered; nil when the new database accepts clients
}

// Limits of a cutover: while it waits, nobody may write. The wait for the last changes ends in a refusal, the
// counting of rows does not.
const (
	cutoverPatience = time.Minute
	countPatience   = time.Second
	dropPatience    = 20 * time.Second
	// cutoverWait is how long a request waits for the end.
	cutoverWait = 5 * time.Minute
)

// cutOver carries out a request. done says that there is no way back: err is then what is left to be tried again, or nil.
func (f *follower) cutOver(ctx context.Context, request *cutoverRequest) (done bool, err error) {
	if err := request.may(); err != nil {
		request.answer <- err
		return false, nil
	}
	now := f.service.core.Clock()
	f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.CutoverStartedAt = &now })
	f.request = request
	err = f.account.Attempt(func() error { return f.carry(ctx) })
	if err != nil {
		f.account.Enter(model.ImportFollowing, phaseFollowing)
		f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.CutoverStartedAt = nil })
		f.account.Say(model.ImportWarning, "the cutover is refused: "+databases.OperationMessage(err))
		f.answer(errors.Join(err, f.service.recordNow(f.importRun)))
		return false, nil
	}
	return true, f.complete(ctx)
}

// answer answers the request for a cutover, if there is one.
func (r *importRun) answer(err error) {
	if r.request != nil {
		r.request.answer <- err
		r.request = nil
	}
}

// carry does everything after which the new database can still follow on. Then it records that there is no way back.
func (f *follower) carry(ctx context.Context) error {
	if full, err := f.pauseOnFullDisk(ctx); full || err != nil { // nobody should wait for changes that wait themselves
		return err
	}
	if err := f.service.enter(f.importRun, model.ImportCuttingOver, "waiting for the last changes"); err != nil {
		return err
	}
	if err := f.source.CaughtUp(ctx, cutoverPatience); err != nil {
		failing := f.failures > 0 && time.Since(f.failedAt) < cutoverPatience+failureShown
		if said := f.service.databases.ApplyError(f.db); failing && said != "" && ctx.Err() == nil {
			return model.Errorf(model.CodeConflict, "%s; applying changes has failed: %s", databases.OperationMessage(err), said)
		}
		return err
	}
	f.account.Enter(model.ImportCuttingOver, "sequences and numbers of rows")
	if err := f.source.Carry(ctx, countPatience); err != nil {
		return err
	}
	f.compared = time.Time{}
	if f.compare(ctx); f.changed != nil {
		return f.changed
	}
	f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.Cut, follow.Trouble = true, "" })
	if err := f.service.enter(f.importRun, model.ImportCuttingOver, "completing the copy"); err != nil {
		f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.Cut = false })
		return err
	}
	return nil
}

// complete does the rest of a cutover, and may be repeated: it ends the subscription, drops the slot, and makes the
// copy what every import makes.
func (f *follower) complete(ctx context.Context) error {
	f.account.Enter(model.ImportCuttingOver, "completing the copy")
	if err := f.service.databases.Unsubscribe(ctx, f.db, f.follow().Slot); err != nil {
		return err
	}
	if f.gateway != nil {
		f.gateway.Close()
	}
	if err := f.account.Attempt(func() error { return f.source.Finish(ctx) }); err != nil {
		return err
	}
	f.noteWritten(ctx)
	if remains := f.service.dropSlot(ctx, f.importRun); remains != "" {
		f.source.NoteSlot(remains)
	}
	if err := f.service.recordNow(f.importRun); err != nil {
		return err
	}
	if err := os.Remove(f.service.planPath(f.db)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what the cutover needed: %w", err)
	}
	return f.service.databases.EndFollowing(ctx, f.db)
}
