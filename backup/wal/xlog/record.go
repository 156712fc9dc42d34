package xlog

import (
	"encoding/binary"
	"time"
)

// Record is a WAL record.
type Record struct {
	// Start is the position of the first byte. End is where the next record may start: the next multiple of 8, or
	// the next segment after a switch. It is PostgreSQL's replay position after the record.
	Start, End LSN
	XID        uint32
	Resource   uint8 // resource manager
	Info       uint8

	data   []byte // including its header; at most maxKept bytes
	length int    // of the complete record
}

// Length returns the record's length in bytes, including its header.
func (r *Record) Length() int { return r.length }

// Resource managers from PostgreSQL's rmgrlist.h, unchanged from version 15 to 18.
const (
	ResourceXLOG     = 0
	ResourceXact     = 1
	ResourceStorage  = 2
	ResourceDatabase = 4
	lastResource     = 21

	firstCustomResource = 128
)

// infoMask is the part of Record.Info that belongs to the resource manager.
const infoMask = 0xF0

// Record types of the resource managers, by Info.
const (
	xlogSwitch          = 0x40
	xlogParameterChange = 0x60

	xactMask          = 0x70
	xactHasInfo       = 0x80
	xactCommit        = 0x00
	xactPrepare       = 0x10
	xactAbort         = 0x20
	xactCommitPrepare = 0x30
	xactAbortPrepare  = 0x40

	storageCreate   = 0x10
	storageTruncate = 0x20

	databaseCreateCopy = 0x00
	databaseCreateLog  = 0x10
	databaseDrop       = 0x20
)

// Outcome is how a transaction ended, or that it was prepared.
type Outcome int

// Outcomes. Committed includes prepared transactions (COMMIT PREPARED).
const (
	NoOutcome  Outcome = iota
	Committed          // COMMIT, COMMIT PREPARED
	Aborted            // ROLLBACK, or a failure
	Prepared           // PREPARE TRANSACTION
	RolledBack         // ROLLBACK PREPARED
)

// Shows reports whether clients see a difference before and after: in the data, or in the prepared transactions, which
// anybody may still commit.
func (o Outcome) Shows() bool { return o == Committed || o == Prepared || o == RolledBack }

// Outcome reports whether and how r ended or prepared a transaction, and its time by the server's clock. Records are not ordered
// by these times: a transaction takes its timestamp before its WAL position, and clocks may be set.
func (r *Record) Outcome() (Outcome, time.Time) {
	if r.Resource != ResourceXact {
		return NoOutcome, time.Time{}
	}
	outcome, at := NoOutcome, 0 // at is where the time is: first in xl_xact_commit and xl_xact_abort
	switch r.Info & xactMask {
	case xactCommit, xactCommitPrepare:
		outcome = Committed
	case xactAbort:
		outcome = Aborted
	case xactAbortPrepare:
		outcome = RolledBack
	case xactPrepare:
		outcome, at = Prepared, preparedAt
	}
	var parts Parts
	if outcome == NoOutcome || parts.Read(r) != nil || len(parts.Main) < at+8 {
		return NoOutcome, time.Time{}
	}
	return outcome, FromTimestamp(int64(binary.LittleEndian.Uint64(parts.Main[at:])))
}

// preparedAt is the offset of prepared_at in xl_xact_prepare, after magic, total_len, xid and database.
const preparedAt = 16

// epoch is PostgreSQL's epoch, 2000-01-01, in Unix microseconds.
const epoch = 946_684_800_000_000

// FromTimestamp converts a PostgreSQL TimestampTz.
func FromTimestamp(t int64) time.Time { return time.UnixMicro(t + epoch).UTC() }

func ToTimestamp(t time.Time) int64 { return t.UnixMicro() - epoch }
