package meta

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

// The index of a log has keys of a fixed length: the field, 8 bytes of the
// hash of its value, and the number of the entry. So it takes little room
// whatever the values are, and one value's entries lie in their order.
const (
	auditByAction   = 'a'
	auditByActor    = 'w' // who: an id, or the type of actor
	auditByResource = 'r' // an id
	auditByOutcome  = 'o'
)

const auditIndexKey = 1 + 8 + 8

// Nearly every entry is of a key and a success: those two values are not in
// the index, they are what the others are not.
func otherOutcomes() []model.Outcome {
	return []model.Outcome{model.OutcomeDenied, model.OutcomeError}
}

func otherActors() []model.ActorType {
	return []model.ActorType{model.ActorUser, model.ActorOperator, model.ActorSystem}
}

// eachTerm calls use with what an entry is found by.
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

// eachKey calls use with the index keys of an entry, each good until the next;
// most terms are those of the entry before.
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

// numbers are the entries that have one thing in common.
type numbers struct {
	cursor *bbolt.Cursor
	prefix []byte // in the index; empty for the log itself
}

// atMost returns the greatest of the numbers that is at most n.
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

// common returns the greatest number at most n that is in every set, by
// letting each in turn skip what the others do not have.
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
