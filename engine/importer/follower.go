package importer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// Follower watches, at the source, how far the new database follows it, and completes the copy at the cutover.
type Follower struct {
	Follow Following
	Owner  string // of the new database
	Plan   Plan
	Target Target

	source  Source
	account *Account
	conn    *pgx.Conn // with the source; nil while there is none
	passed  []sample  // positions of the source that the new database has not confirmed, oldest first
}

// sample is where the source was at a time.
type sample struct {
	at       time.Time
	position int64
}

// NewFollower returns a follower that connects when it must. The caller closes it.
func NewFollower(source Source, account *Account, f Follower) *Follower {
	source.refused = new(atomic.Pointer[model.Error])
	f.source, f.account = source, account
	return &f
}

// Close ends the follower's session with the source.
func (f *Follower) Close() {
	if f.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = f.conn.Close(ctx)
	f.conn = nil
}

// session returns the session with the source, which has no transaction.
func (f *Follower) session(ctx context.Context) (*pgx.Conn, error) {
	if f.conn != nil && !f.conn.IsClosed() && f.source.refusal() == nil {
		return f.conn, nil
	}
	f.Close()
	f.source.refused = new(atomic.Pointer[model.Error])
	conn, err := f.source.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.PgConn().Exec(ctx, setAll(false)).Close(); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, f.explain(ctx, err)
	}
	f.conn = conn
	return conn, nil
}

// explain explains an error that occurred in the source; nil stays nil.
func (f *Follower) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return (&Session{source: f.source}).trouble(ctx, sourceError{err})
}

// slotState is what the source says of the slot.
type slotState struct {
	Exists, Active                bool
	Confirmed, Retained, Position int64
	Lost                          bool // the source has removed WAL that the slot needs
}

// slot reads the state of the slot, and refuses one that the new database cannot follow.
func (f *Follower) slot(ctx context.Context) (state slotState, err error) {
	state, err = f.readSlot(ctx)
	if err != nil {
		return state, err
	}
	return state, f.refuseLost(state)
}

func (f *Follower) readSlot(ctx context.Context) (state slotState, err error) {
	conn, err := f.session(ctx)
	if err != nil {
		return state, err
	}
	lost := "false"
	if f.Plan.Number >= 130000 {
		lost = "coalesce(s.wal_status = 'lost', false)"
	}
	err = conn.QueryRow(ctx, `select s.slot_name is not null, coalesce(s.active, false), coalesce(pg_wal_lsn_diff(s.confirmed_flush_lsn, '0/0'), 0)::int8,
		coalesce(pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.restart_lsn), 0)::int8, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::int8, `+lost+`
		from (select 1) x left join pg_replication_slots s on s.slot_name = $1`, f.Follow.Slot).
		Scan(&state.Exists, &state.Active, &state.Confirmed, &state.Retained, &state.Position, &state.Lost)
	if err != nil {
		return state, f.explain(ctx, fmt.Errorf("read the slot: %w", err))
	}
	return state, nil
}

// lossRemedy follows the reason why changes are lost.
const lossRemedy = "changes are lost, so the new database cannot follow any more: cancel this import and start another"

// refuseLost says that changes are lost, after which the new database cannot follow.
func (f *Follower) refuseLost(state slotState) error {
	switch {
	case !state.Exists:
		return model.Errorf(model.CodeConflict, "the source has no replication slot %s any more; %s", f.Follow.Slot, lossRemedy)
	case state.Lost:
		return model.Errorf(model.CodeConflict, "the source has removed write-ahead log that the slot %s still needed (max_slot_wal_keep_size); %s", f.Follow.Slot, lossRemedy)
	case f.isSetBack(state):
		return model.Errorf(model.CodeConflict, "the source was set back to an earlier state: its log ended before a position that the new database has followed to; %s", lossRemedy)
	default:
		return nil
	}
}

// isSetBack reports whether the source's log ever ended before a position that it had reached, as after it was set back to
// a snapshot of its disk: what it writes up to that position never arrives. The slot's position does not tell: after a crash
// of the source it is an earlier one.
func (f *Follower) isSetBack(state slotState) (is bool) {
	f.account.ChangeFollow(func(follow *model.ImportFollow) {
		follow.SetBack = follow.SetBack || state.Position < follow.SourcePosition || state.Confirmed > state.Position
		follow.SourcePosition = max(follow.SourcePosition, state.Position)
		is = follow.SetBack
	})
	return is
}

// Poll records how far the new database is behind the source, and reports whether a subscriber reads the slot.
func (f *Follower) Poll(ctx context.Context) (active bool, err error) {
	state, err := f.slot(ctx)
	if err != nil {
		return false, err
	}
	f.record(state)
	return state.Active, nil
}

func (f *Follower) record(state slotState) {
	now := f.account.clock()
	f.passed = append(f.passed, sample{now, state.Position})
	for len(f.passed) > 0 && f.passed[0].position <= state.Confirmed {
		f.passed = f.passed[1:]
	}
	const most = 10_000 // hours; then every second one is enough
	if len(f.passed) > most {
		for i := range most / 2 {
			f.passed[i] = f.passed[2*i]
		}
		f.passed = f.passed[:most/2]
	}
	lag := model.ImportLag{At: now, Bytes: max(state.Position-state.Confirmed, 0), Retained: max(state.Retained, 0)}
	if len(f.passed) > 0 {
		lag.Seconds = now.Sub(f.passed[0].at).Seconds()
	}
	f.account.ChangeFollow(func(follow *model.ImportFollow) { follow.Lag = &lag })
}

// HasOtherDefinitions reports whether the source's definitions differ from those of the copy.
func (f *Follower) HasOtherDefinitions(ctx context.Context) (bool, error) {
	conn, err := f.session(ctx)
	if err != nil {
		return false, err
	}
	now, err := count(ctx, conn, fingerprint)
	if err != nil {
		return false, f.explain(ctx, fmt.Errorf("read catalog: %w", err))
	}
	return now != f.Plan.Fingerprint, nil
}
