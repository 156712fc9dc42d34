package meta

import (
	"encoding/binary"
	"fmt"

	"holdfast/engine/model"
)

// maxFaults limits how many faults of a chain are reported.
const maxFaults = 100

// Verification is the result of verifying a chain.
type Verification struct {
	Entries int
	// Faults are in the order of the entries; there are at most maxFaults.
	Faults []AuditFault
}

// AuditFault is a place where a chain differs from what was written.
type AuditFault struct {
	Number  uint64 // of the entry
	ID      string // of the entry, "" if it cannot be read
	Problem string
}

// String implements fmt.Stringer.
func (f AuditFault) String() string {
	if f.ID == "" {
		return fmt.Sprintf("entry %d: %s", f.Number, f.Problem)
	}
	return fmt.Sprintf("entry %d (%s): %s", f.Number, f.ID, f.Problem)
}

// verifyBatch is how many entries are checked in one snapshot; a long snapshot
// would block writers.
const verifyBatch = 10_000

// VerifyAudit walks an organization's chain from its oldest kept entry to its
// newest and reports where one was changed, removed or reordered. It includes
// entries added meanwhile. first is the action with which every such log begins, ""
// if there is none; it detects that a whole log was removed.
func (db *DB) VerifyAudit(chain Chain, organization string, first model.Action) (Verification, error) {
	v := &verifier{organization: organization, first: first, hash: newHasher(chain.Key)}
	read := db.ViewFlushed // only at first: what is queued later need not be checked
	for done := false; !done; read = db.View {
		if err := read(func(tx *Tx) error {
			done = v.batch(tx, verifyBatch)
			return nil
		}); err != nil {
			return v.Verification, err
		}
	}
	return v.Verification, nil
}

// verifier is the state of a verification.
type verifier struct {
	Verification
	organization string
	hash         hasher
	number       uint64 // of the last entry seen
	id           string
	previous     string // its hash, if known
	known        bool
	begun        bool
	first        model.Action // action of entry 1, "" if unknown
}

// batch checks up to limit entries and reports whether it reached the end.
func (v *verifier) batch(tx *Tx, limit int) (done bool) {
	entries := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(v.organization))
	if entries == nil {
		if v.first != "" {
			v.fault(1, "", "the whole log was removed: it begins with %s", v.first)
		}
		return true
	}
	anchor, why := tx.readMark(v.hash, auditAnchorsBucket, v.organization)
	if !v.begun || why == "" && anchor.Number > v.number { // pruned up to here or farther
		v.begin(anchor, why)
	}
	cursor := entries.Cursor()
	key, data := cursor.Seek(auditKey(v.number + 1))
	for ; key != nil && limit > 0; key, data = cursor.Next() {
		v.entry(key, data)
		limit--
	}
	if key == nil {
		v.end(tx.readMark(v.hash, auditHeadsBucket, v.organization))
	}
	return key == nil
}

func (v *verifier) fault(number uint64, id, format string, args ...any) {
	if len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, AuditFault{Number: number, ID: id, Problem: fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) begin(anchor auditMark, why string) {
	v.begun = true
	v.number, v.previous, v.known = anchor.Number, anchor.Hash, why == "" && !anchor.Damaged
	if why != "" {
		v.fault(0, "", "where the log begins cannot be known: %s", why)
	}
	if anchor.Damaged {
		v.fault(anchor.Number, "", "was damaged when it was pruned")
	}
}

func (v *verifier) entry(key, data []byte) {
	number := binary.BigEndian.Uint64(key)
	v.Entries++
	if number != v.number+1 {
		v.fault(number, "", "%s before it were removed", span(v.number+1, number-1))
		v.known = false
	}
	v.number, v.id = number, ""
	entry, err := decodeAudit(v.organization, key, data)
	if err != nil {
		v.fault(number, "", "is damaged")
		v.known = false
		return
	}
	if hash, ok := v.hash.entry(data[recordHeader:], entry.Hash); !ok || hash != entry.Hash {
		v.fault(number, entry.ID, "was changed")
	}
	switch {
	case number == 1 && v.first != "" && entry.Action != v.first:
		v.fault(number, entry.ID, "is not %s, with which the log began: that was removed", v.first)
	case entry.PreviousHash == "" && number > 1:
		v.fault(number, entry.ID, "begins a new segment: the entries before it were damaged when it was written")
	case v.known && entry.PreviousHash != v.previous:
		v.fault(number, entry.ID, "does not follow the one before it: entries were reordered, exchanged or inserted")
	}
	v.id, v.previous, v.known = entry.ID, entry.Hash, true
}

func (v *verifier) end(head auditMark, why string) {
	switch {
	case why != "":
		v.fault(v.number, v.id, "whether it is the newest cannot be known: %s", why)
	case head.Number > v.number:
		v.fault(head.Number, "", "%s at the end were removed", span(v.number+1, head.Number))
	case head.Number < v.number:
		v.fault(v.number, v.id, "the entries after %d were not written by this appliance", head.Number)
	case v.known && v.Entries > 0 && head.Hash != v.previous:
		v.fault(v.number, v.id, "is not the newest entry that was written")
	}
}

func span(first, last uint64) string { return fmt.Sprintf("the entries from %d to %d", first, last) }
