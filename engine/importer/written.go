package importer

import (
	"context"
	"errors"
	"fmt"
)

// mostPeeked is how many messages of a slot are looked at.
const mostPeeked = 100_000

// IsWritten reports whether the source has open transactions, or changes after what the new database has. It is false
// without the slot. The slot must not be read meanwhile.
func (f *Follower) IsWritten(ctx context.Context) (bool, error) {
	state, err := f.readSlot(ctx)
	if err != nil || !state.Exists {
		return false, err
	}
	conn, err := f.session(ctx)
	if err != nil {
		return false, err
	}
	open, err := listOpen(ctx, conn)
	if err != nil {
		return false, f.explain(ctx, err)
	}
	if len(open) > 0 {
		return true, nil
	}
	var changes, messages int64
	// Those that change something are I, U, D and T. Before PostgreSQL 15 every transaction has a B and a C.
	err = conn.QueryRow(ctx, `select count(*) filter (where get_byte(data, 0) in (73, 85, 68, 84)), count(*)
		from pg_logical_slot_peek_binary_changes($1, null, $2, 'proto_version', '1', 'publication_names', $3)`,
		f.Follow.Slot, mostPeeked, quoteName(f.Follow.Publication)).Scan(&changes, &messages)
	if err != nil {
		return false, f.explain(ctx, fmt.Errorf("read the slot's changes: %w", err))
	}
	return changes > 0 || messages >= mostPeeked, nil
}

// NoteSlot records that the slot remains at the source.
func (f *Follower) NoteSlot(remains string) {
	f.account.flaw("REPLICATION SLOT "+f.Follow.Slot, errors.New(remains))
}

// NoteWritten records that the source was written to after the end of the new database's changes, or, with err, that this is
// not known.
func (f *Follower) NoteWritten(err error) {
	said := errors.New("the source was written to after the cutover was decided, and these changes are not here; copy them, or import again")
	if err != nil {
		said = fmt.Errorf("whether the source was written to after the cutover was decided is not known: %w", err)
	}
	f.account.flaw("CHANGES OF THE SOURCE", said)
}
