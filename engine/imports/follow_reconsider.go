package imports

import (
	"context"
	"time"

	"holdfast/engine/model"
)

// reconsiderPatience is how long a start that finds a decided cutover waits for the source, to see whether it goes on.
const reconsiderPatience = 2 * time.Minute

// reconsider looks whether the source was written to since a cutover was decided that the appliance did not survive: whoever
// asked for it got an error, and may have let the source go on. Then the new database follows on, if it still can.
func (f *follower) reconsider(ctx context.Context) (followsOn bool, err error) {
	if !f.doubtful || f.considered {
		return false, nil
	}
	written, err := f.source.IsWritten(ctx)
	if err != nil && (ctx.Err() != nil || time.Since(f.doubted) < reconsiderPatience) {
		return false, err
	}
	if err != nil {
		f.source.NoteWritten(err)
	}
	if written {
		state, err := f.service.databases.SubscriptionState(ctx, f.db, f.follow().Slot)
		if err != nil {
			return false, err
		}
		followsOn = state.Exists
	}
	f.considered = true
	if !followsOn {
		return false, nil
	}
	f.doubtful = false
	f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.Cut, follow.CutoverStartedAt = false, nil })
	f.account.Say(model.ImportWarning, "the appliance was stopped during the cutover, and the source was written to since: the database follows on; ask for the cutover again")
	return true, f.service.enter(f.importRun, model.ImportFollowing, phaseFollowing)
}

// noteWritten records what a cutover that the appliance did not survive lacks, as long as the slot has it.
func (f *follower) noteWritten(ctx context.Context) {
	if !f.doubtful {
		return
	}
	if written, err := f.source.IsWritten(ctx); err == nil && written {
		f.source.NoteWritten(nil)
	}
}
