package meta

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"holdfast/engine/model"
)

// The index keys of a log have a fixed length: the field, 8 bytes of the hash of
// its value, and the number of the entry. The index is therefore small whatever
// the values are, and the entries of one value are in order.
const (
	auditByAction   = 'a'
	auditByActor    = 'w' // an actor's id or type
	auditByResource = 'r' // an id
	auditByOutcome  = 'o'
	auditSetBack    = 'b' // of "": entries before which the clock was set back
)

const auditIndexKey = 1 + 8 + 8

// Nearly every entry is by a key and a success. These two values are not indexed:
// they match the entries that no other value matches.
func otherOutcomes() []model.Outcome {
	return []model.Outcome{model.OutcomeDenied, model.OutcomeError}
}

func otherActors() []model.ActorType {
	return []model.ActorType{model.ActorUser, model.ActorOperator, model.ActorSystem}
}

// eachTerm calls use with the index terms of an entry.
func eachTerm(e *model.AuditEntry, use func(field byte, value string)) {
	use(auditByAction, string(e.Action))
	if slices.Contains(otherOutcomes(), e.Outcome) {
		use(auditByOutcome, string(e.Outcome))
	}
	if slices.Contains(otherActors(), e.Actor.Type) {
		use(auditByActor, string(e.Actor.Type))
	}
	if e.Actor.ID != "" {
		use(auditByActor, e.Actor.ID)
	}
	if e.Resource.ID != "" {
		use(auditByResource, e.Resource.ID)
	}
}

func auditTerm(field byte, value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return append(make([]byte, 0, auditIndexKey), append([]byte{field}, sum[:8]...)...)
}

// eachKey calls use with the index keys of an entry, each valid until the next
// call. Most terms recur from entry to entry, so they are cached.
func (log *auditLog) eachKey(number uint64, e *model.AuditEntry, use func(key []byte) error) (err error) {
	eachTerm(e, func(field byte, value string) {
		log.key = append(append(log.key[:0], field), value...)
		term, ok := log.known[string(log.key)]
		if !ok {
			term = auditTerm(field, value)
			log.known[string(log.key)] = term
		}
		log.key = binary.BigEndian.AppendUint64(append(log.key[:0], term...), number)
		if err == nil {
			err = use(log.key)
		}
	})
	if err != nil {
		return fmt.Errorf("index audit entry: %w", err)
	}
	return nil
}

func (log *auditLog) indexEntry(number uint64, e *model.AuditEntry) error {
	return log.eachKey(number, e, func(key []byte) error { return log.index.Put(key, nil) })
}

func (log *auditLog) unindexEntry(number uint64, e *model.AuditEntry) error {
	return log.eachKey(number, e, log.index.Delete)
}

// indexTime notes that the clock was set back before an entry. Searches by time go through the entries between two
// such notes apart.
func (log *auditLog) indexTime(number uint64, at time.Time) error {
	if !at.Before(log.latest.Add(-auditDisorder)) {
		if at.After(log.latest) {
			log.latest = at
		}
		return nil
	}
	log.latest = at
	if err := log.index.Put(setBackKey(number), nil); err != nil {
		return fmt.Errorf("index audit entry: %w", err)
	}
	return nil
}

func setBackKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(auditTerm(auditSetBack, ""), number)
}

// numbers is the set of entries that share one index term.
type numbers struct {
	cursor boltCursor
	prefix []byte // in the index; empty for the log itself
}

// atMost returns the largest number in the set that is at most n.
func (s numbers) atMost(n uint64) (uint64, bool) {
	bound := binary.BigEndian.AppendUint64(bytes.Clone(s.prefix), n)
	key, _ := s.cursor.Seek(bound)
	if !bytes.Equal(key, bound) {
		if key == nil {
			key, _ = s.cursor.Last()
		} else {
			key, _ = s.cursor.Prev()
		}
	}
	if len(key) != len(bound) || !bytes.HasPrefix(key, s.prefix) {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[len(s.prefix):]), true
}

func (s numbers) has(n uint64) bool {
	found, ok := s.atMost(n)
	return ok && found == n
}

// common returns the largest number at most n that is in every set. Each set in
// turn skips the numbers that another set lacks.
func common(sets []numbers, n uint64) (uint64, bool) {
	for i, agreed := 0, 0; agreed < len(sets); i = (i + 1) % len(sets) {
		found, ok := sets[i].atMost(n)
		if !ok {
			return 0, false
		}
		if found == n {
			agreed++
		} else {
			n, agreed = found, 1
		}
	}
	return n, true
}
