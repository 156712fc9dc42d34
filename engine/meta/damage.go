package meta

import (
	"bytes"
	"errors"
	"sync"
)

// maxDamaged bounds how many damaged records are remembered.
const maxDamaged = 1000

// DamagedRecord names a record of a table that cannot be read.
type DamagedRecord struct{ Table, ID string }

// damageLog remembers the damaged records that were met, so that each is reported once.
type damageLog struct {
	mu    sync.Mutex
	known map[DamagedRecord]bool
	fresh []DamagedRecord
}

func (d *damageLog) note(r DamagedRecord) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[r] || len(d.known) >= maxDamaged {
		return
	}
	if d.known == nil {
		d.known = map[DamagedRecord]bool{}
	}
	d.known[r] = true
	d.fresh = append(d.fresh, r)
}

// Damaged returns the damaged records that were met since the last call. Each is returned
// once.
func (db *DB) Damaged() []DamagedRecord {
	db.damage.mu.Lock()
	defer db.damage.mu.Unlock()
	fresh := db.damage.fresh
	db.damage.fresh = nil
	return fresh
}

// Redamaged has the next call of Damaged return a record again, whose removal failed.
func (db *DB) Redamaged(r DamagedRecord) {
	db.damage.mu.Lock()
	defer db.damage.mu.Unlock()
	db.damage.fresh = append(db.damage.fresh, r)
}

// Undamaged forgets a record that was removed, so that others can be remembered.
func (db *DB) Undamaged(r DamagedRecord) {
	db.damage.mu.Lock()
	defer db.damage.mu.Unlock()
	delete(db.damage.known, r)
}

// DropDamaged removes a record that cannot be read, if nothing else needs it: an event, a
// delivery or a webhook. It reports whether it did.
func (tx *Tx) DropDamaged(r DamagedRecord) (dropped bool, err error) {
	switch r.Table {
	case eventsTable:
		return tx.Events().dropDamaged(r.ID)
	case deliveriesTable:
		return tx.Deliveries().dropDamaged(r.ID)
	case webhooksTable:
		return tx.Webhooks().dropDamaged(r.ID)
	default:
		return false, nil
	}
}

// Drop removes the record with id, if there is one, even if it is damaged. A table with a
// tally needs salvage for that.
func (t Table[T]) Drop(id string) error {
	dropped, err := t.dropDamaged(id)
	if err == nil && !dropped {
		err = t.Delete(id)
	}
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// dropDamaged removes the record with id if it cannot be read. It finds its entries by
// walking the indexes.
func (t Table[T]) dropDamaged(id string) (dropped bool, err error) {
	if _, err := t.Get(id); err == nil {
		return false, nil
	}
	dropped = t.bucket().Get([]byte(id)) != nil
	keys := map[string][]byte{}
	for _, ix := range t.indexes {
		b := t.indexBucket(ix.name)
		_ = b.ForEach(func(key, value []byte) error {
			if string(value) == id {
				keys[ix.name] = bytes.Clone(key)
			}
			return nil
		})
		if key := keys[ix.name]; key != nil {
			err = errors.Join(err, b.Delete(key))
		}
	}
	err = errors.Join(err, t.bucket().Delete([]byte(id)))
	if len(keys) > 0 && t.tally != nil {
		record := t.salvage(keys)
		err = errors.Join(err, t.count(&record, nil))
	}
	return dropped || len(keys) > 0, err
}

// keyPart returns a part of an index key.
func keyPart(key []byte, n int) string {
	parts := bytes.SplitN(key, []byte{separator}, n+2)
	if n >= len(parts) {
		return ""
	}
	return string(parts[n])
}
