package meta

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sort"
	"time"

	"holdfast/engine/model"
)

// AuditFilter selects entries; an empty field matches all of them.
type AuditFilter struct {
	Action   string
	Actor    string // the id of an actor, or a type of actor
	Resource string // the id of a resource
	Outcome  string
	// RequestID and IP are not indexed: a walk reads at most scanBound entries for them.
	RequestID string
	IP        string
	// Since and Until limit the time: at or after Since, before Until.
	Since, Until time.Time
}

// scanBound is the maximum number of entries that one walk reads for what is not indexed, and ErrScan means that it was
// reached.
const scanBound = 200_000

var ErrScan = errors.New("the audit log has too many entries to search all of them")

// scanned returns the texts that the stored form of every match contains.
func (f AuditFilter) scanned() (needles [][]byte) {
	for _, text := range []string{f.RequestID, f.IP} {
		if text != "" {
			quoted, _ := json.Marshal(text) // a string can always be encoded
			needles = append(needles, quoted)
		}
	}
	return needles
}

// AuditPage returns up to limit matching entries of an organization, newest first,
// after skipping skip of them, and whether there are more. It omits damaged
// entries; VerifyAudit reports them.
func (tx *Tx) AuditPage(organization string, filter AuditFilter, skip uint64, limit int) ([]model.AuditEntry, bool, error) {
	walk, err := tx.auditWalk(organization, filter)
	if walk == nil || err != nil {
		return nil, false, err
	}
	if filter == (AuditFilter{}) { // numbers have no gaps: no walk is needed
		if skip > walk.next {
			return nil, false, nil
		}
		walk.next, skip = walk.next-skip, 0
	}
	var page []model.AuditEntry
	for {
		number, data, ok := walk.step()
		if !ok && walk.reads > scanBound {
			return nil, false, ErrScan
		}
		if !ok {
			return page, false, nil
		}
		if skip > 0 {
			skip--
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		if entry, err := decodeAudit(organization, auditKey(number), data); err == nil {
			page = append(page, entry)
		}
	}
}

// AuditBatch returns up to limit matching entries of an organization with numbers below
// before (0 to start at the newest), newest first, and the number to continue from, 0 at
// the end. It may return fewer than limit entries and still a number to continue from.
// It omits damaged entries.
func (tx *Tx) AuditBatch(organization string, filter AuditFilter, before uint64, limit int) (entries []model.AuditEntry, next uint64, err error) {
	walk, err := tx.auditWalk(organization, filter)
	if walk == nil || err != nil {
		return nil, 0, err
	}
	if before > 0 {
		walk.next = min(walk.next, before-1)
	}
	for len(entries) < limit {
		number, data, ok := walk.step()
		if !ok && walk.reads <= scanBound {
			return entries, 0, nil
		}
		if !ok {
			break
		}
		if entry, err := decodeAudit(organization, auditKey(number), data); err == nil {
			entries = append(entries, entry)
		}
	}
	return entries, walk.next + 1, nil
}

// auditWalk scans the entries that match a filter, newest first.
type auditWalk struct {
	entries *boltBucket
	sets    []numbers // an entry must be in all of these
	without []numbers // and in none of these
	filter  AuditFilter
	needles [][]byte // in the stored form of every match
	reads   int      // entries read for them
	// next is the largest candidate number, oldest the smallest.
	next, oldest uint64
}

// auditWalk starts a walk at the newest entry of an organization. It returns nil if there
// are none.
func (tx *Tx) auditWalk(organization string, filter AuditFilter) (*auditWalk, error) {
	entries := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization))
	if entries == nil {
		return nil, nil
	}
	index := tx.bolt.Bucket([]byte(auditIndexBucket)).Bucket(auditName(organization))
	if index == nil {
		return nil, &CorruptError{Where: auditIndexBucket + "/" + organization}
	}
	return newAuditWalk(entries, index, filter), nil
}

func newAuditWalk(entries, index *boltBucket, filter AuditFilter) *auditWalk {
	w := &auditWalk{entries: entries, filter: filter, needles: filter.scanned(), next: entries.Sequence(), oldest: 1}
	w.sets, w.without = filter.terms(index)
	if len(w.sets) == 0 {
		w.sets = []numbers{{cursor: entries.Cursor()}}
	}
	oldest, newest := auditBetween(entries, index, filter.Since, filter.Until)
	w.oldest, w.next = oldest, min(w.next, newest)
	return w
}

// terms returns the index sets that an entry must be in and those that it must not
// be in.
func (f AuditFilter) terms(index *boltBucket) (sets, without []numbers) {
	set := func(field byte, value string) numbers { return numbers{index.Cursor(), auditTerm(field, value)} }
	if f.Resource != "" {
		sets = append(sets, set(auditByResource, f.Resource))
	}
	switch f.Actor {
	case "":
	case string(model.ActorKey):
		for _, t := range otherActors() {
			without = append(without, set(auditByActor, string(t)))
		}
	default:
		sets = append(sets, set(auditByActor, f.Actor))
	}
	if f.Action != "" {
		sets = append(sets, set(auditByAction, f.Action))
	}
	switch f.Outcome {
	case "":
	case string(model.OutcomeSuccess):
		for _, o := range otherOutcomes() {
			without = append(without, set(auditByOutcome, string(o)))
		}
	default:
		sets = append(sets, set(auditByOutcome, f.Outcome))
	}
	return sets, without
}

// auditDisorder is the largest time by which entries can be out of order while the clock is not set back: an entry may
// wait for free disk space before it is written.
const auditDisorder = 10 * time.Minute

// auditBetween returns the numbers of the oldest and the newest entry that may have a time at or after since and before
// until, zero times being no limits. Entries between two moments at which the clock was set back are in order, so each
// such run is searched apart.
func auditBetween(entries, index *boltBucket, since, until time.Time) (oldest, newest uint64) {
	oldest, newest = 1, math.MaxUint64-1
	key, _ := entries.Cursor().First()
	if key == nil || since.IsZero() && until.IsZero() {
		return oldest, newest
	}
	runs := []uint64{binary.BigEndian.Uint64(key)} // numbers at which one begins
	term := auditTerm(auditSetBack, "")
	cursor := index.Cursor()
	for key, _ := cursor.Seek(setBackKey(runs[0] + 1)); bytes.HasPrefix(key, term); key, _ = cursor.Next() {
		runs = append(runs, binary.BigEndian.Uint64(key[len(term):]))
	}
	end := entries.Sequence() + 1
	runs = append(runs, end)
	if !since.IsZero() {
		oldest = end
		for i := range len(runs) - 1 {
			if first := firstFrom(entries, runs[i], runs[i+1], since.Add(-auditDisorder)); first < runs[i+1] {
				oldest = first
				break
			}
		}
	}
	if !until.IsZero() {
		newest = 0
		for i := len(runs) - 2; i >= 0; i-- {
			if first := firstFrom(entries, runs[i], runs[i+1], until.Add(auditDisorder)); first > runs[i] {
				newest = first - 1
				break
			}
		}
	}
	return oldest, newest
}

// firstFrom returns the number of the first entry at or after at of those from begin to before end, which are in order,
// or end.
func firstFrom(entries *boltBucket, begin, end uint64, at time.Time) uint64 {
	return begin + uint64(sort.Search(int(end-begin), func(i int) bool {
		made, ok := auditTime(entries.Get(auditKey(begin + uint64(i))))
		return ok && !made.Before(at)
	}))
}

// step returns the next matching entry, going backwards.
func (w *auditWalk) step() (number uint64, data []byte, ok bool) {
	for {
		if number, ok = common(w.sets, w.next); !ok || number < w.oldest || number == 0 {
			return 0, nil, false
		}
		w.next = number - 1
		if slices.ContainsFunc(w.without, func(s numbers) bool { return s.has(number) }) {
			continue
		}
		if data = w.entries.Get(auditKey(number)); data != nil && w.inTime(data) && w.contains(number, data) {
			return number, data, true
		}
		if w.reads > scanBound {
			return 0, nil, false
		}
	}
}

// contains reports whether an entry has what is not indexed.
func (w *auditWalk) contains(number uint64, data []byte) bool {
	if w.needles == nil {
		return true
	}
	w.reads++
	if !containsAll(data, w.needles) {
		return false
	}
	entry, err := decodeAudit("", auditKey(number), data)
	return err == nil && (w.filter.RequestID == "" || entry.RequestID == w.filter.RequestID) && (w.filter.IP == "" || entry.IP == w.filter.IP)
}

func (w *auditWalk) inTime(data []byte) bool {
	if w.filter.Since.IsZero() && w.filter.Until.IsZero() {
		return true
	}
	at, ok := auditTime(data)
	return ok && !at.Before(w.filter.Since) && (w.filter.Until.IsZero() || at.Before(w.filter.Until))
}

// AuditLines returns the stored text of up to limit entries of an organization,
// oldest first, starting at the number from, and the next number, 0 at the end.
func (tx *Tx) AuditLines(organization string, from uint64, limit int) (lines []string, next uint64, err error) {
	entries := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization))
	if entries == nil {
		return nil, 0, nil
	}
	cursor := entries.Cursor()
	key, data := cursor.Seek(auditKey(from))
	for ; key != nil && len(lines) < limit; key, data = cursor.Next() {
		text, err := unframe("", data)
		if err != nil {
			text = data // unchanged: what is left of it is evidence
		}
		lines = append(lines, string(text))
	}
	if key != nil {
		next = binary.BigEndian.Uint64(key)
	}
	return lines, next, nil
}
