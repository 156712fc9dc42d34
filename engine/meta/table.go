package meta

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"holdfast/engine/model"
)

var (
	// ErrNotFound reports that the record does not exist.
	ErrNotFound = errors.New("no such record")
	// ErrExists reports that a record with the same id or unique key exists.
	ErrExists = errors.New("the record exists already")
)

// separator ends each part of an index key. Ids and names do not contain it.
const separator = 0

// Table provides the records of one type within a transaction.
type Table[T any] struct {
	tx      boltTx
	name    string
	id      func(*T) string
	indexes []index[T]
	// tally returns what the record adds to the totals of an organization; nil for
	// types that add nothing.
	tally func(*T) (organization string, add model.Totals)
	// salvage returns of a damaged record what tally needs, from its index keys; nil for
	// types that are not dropped when they are damaged.
	salvage func(keys map[string][]byte) T
	// events returns the events that a change of a record means; before or after is nil
	// where there is none. It is nil for types that mean none.
	events func(tx *Tx, before, after *T) ([]model.Event, error)
	within *Tx
}

// index finds records by a key other than the id.
type index[T any] struct {
	name string
	// unique refuses a second record with the same key.
	unique bool
	// key returns the record's key, nil to leave the record out. In a non-unique
	// index, the id follows the key.
	key func(*T) []byte
}

func table[T any](tx *Tx, name string, id func(*T) string, indexes ...index[T]) Table[T] {
	return Table[T]{tx: tx.bolt, within: tx, name: name, id: id, indexes: indexes}
}

func by[T any](name string, key func(*T) []byte) index[T] { return index[T]{name, false, key} }

func unique[T any](name string, key func(*T) []byte) index[T] { return index[T]{name, true, key} }

func (t Table[T]) bucketNames() []string {
	names := []string{t.name}
	for _, ix := range t.indexes {
		names = append(names, t.name+"."+ix.name)
	}
	return names
}

func (t Table[T]) bucket() *boltBucket { return t.tx.Bucket([]byte(t.name)) }

func (t Table[T]) indexBucket(name string) *boltBucket {
	return t.tx.Bucket([]byte(t.name + "." + name))
}

// Get returns the record with id, or ErrNotFound.
func (t Table[T]) Get(id string) (T, error) {
	var record T
	data := t.bucket().Get([]byte(id))
	if data == nil {
		return record, ErrNotFound
	}
	err := decodeRecord(t.name+"/"+id, data, &record)
	if err != nil {
		t.within.noteDamage(t.name, id)
	}
	return record, err
}

// Find returns the record with the key in a unique index, or ErrNotFound.
func (t Table[T]) Find(indexName string, key []byte) (T, error) {
	id := t.indexBucket(indexName).Get(key)
	if id == nil {
		var none T
		return none, ErrNotFound
	}
	return t.indexed(indexName, id)
}

// indexed returns the record an index entry points to. A missing record is
// corruption.
func (t Table[T]) indexed(indexName string, id []byte) (T, error) {
	record, err := t.Get(string(id))
	if errors.Is(err, ErrNotFound) {
		t.within.noteDamage(t.name, string(id))
		err = &CorruptError{Where: fmt.Sprintf("%s.%s of %q", t.name, indexName, id)}
	}
	return record, err
}

// Insert adds a record, or returns ErrExists and changes nothing.
func (t Table[T]) Insert(record T) error {
	if t.bucket().Get([]byte(t.id(&record))) != nil {
		return ErrExists
	}
	if err := t.write(&record, make([][]byte, len(t.indexes))); err != nil {
		return err
	}
	return errors.Join(t.count(nil, &record), t.tell(nil, &record))
}

// Update applies change to the record with id and returns the result. It returns
// ErrNotFound if there is none and ErrExists if another record has a unique key; it
// then changes nothing. change must not modify the id.
func (t Table[T]) Update(id string, change func(*T) error) (T, error) {
	old, err := t.Get(id)
	if err != nil {
		return old, err
	}
	before := t.entries(&old) // before change, which may modify what old points to
	counted := old
	told, err := t.before(id)
	if err != nil {
		return old, err
	}
	record := old
	if err := change(&record); err != nil {
		return old, err
	}
	if got := t.id(&record); got != id {
		return old, fmt.Errorf("update %s %q: the change made its id %q", t.name, id, got)
	}
	if err := t.write(&record, before); err != nil {
		return record, err
	}
	return record, errors.Join(t.count(&counted, &record), t.tell(told, &record))
}

// Change is Update with a change that cannot fail.
func (t Table[T]) Change(id string, change func(*T)) error {
	_, err := t.Update(id, func(record *T) error {
		change(record)
		return nil
	})
	return err
}

// ChangeWhere applies Change to every matching record.
func (t Table[T]) ChangeWhere(matches func(T) bool, change func(*T)) error {
	records, err := t.Where(matches)
	for _, record := range records {
		if err == nil {
			err = t.Change(t.id(&record), change)
		}
	}
	return err
}

// Delete removes the record with id, or returns ErrNotFound.
func (t Table[T]) Delete(id string) error {
	record, err := t.Get(id)
	if err != nil {
		return err
	}
	if err := t.reindex([]byte(id), t.entries(&record), make([][]byte, len(t.indexes))); err != nil {
		return err
	}
	if err := t.bucket().Delete([]byte(id)); err != nil {
		return fmt.Errorf("remove %s: %w", t.name, err)
	}
	return errors.Join(t.count(&record, nil), t.tell(&record, nil))
}

// before returns a copy of the record with id that no change modifies, nil where no events are told.
func (t Table[T]) before(id string) (*T, error) {
	if t.events == nil || t.within.events == nil {
		return nil, nil
	}
	record, err := t.Get(id)
	return &record, err
}

// tell records the events that a change of a record means.
func (t Table[T]) tell(before, after *T) error {
	if t.events == nil || t.within.events == nil {
		return nil
	}
	events, err := t.events(t.within, before, after)
	for _, e := range events {
		if err == nil {
			err = t.within.RecordEvent(e)
		}
	}
	return err
}

// write stores record; before are its previous index entries. It changes nothing if
// another record has a unique key, so the caller may continue after ErrExists.
func (t Table[T]) write(record *T, before [][]byte) error {
	id, after := []byte(t.id(record)), t.entries(record)
	for i, ix := range t.indexes {
		if ix.unique && after[i] != nil && !bytes.Equal(before[i], after[i]) && t.indexBucket(ix.name).Get(after[i]) != nil {
			return fmt.Errorf("%s: %w", ix.name, ErrExists)
		}
	}
	data, err := encodeRecord(record)
	if err != nil {
		return err
	}
	if err := t.bucket().Put(id, data); err != nil {
		return fmt.Errorf("store %s: %w", t.name, err)
	}
	return t.reindex(id, before, after)
}

// reindex replaces the index entries before of the record with id by after.
func (t Table[T]) reindex(id []byte, before, after [][]byte) error {
	for i, ix := range t.indexes {
		if before[i] != nil && after[i] != nil && bytes.Equal(before[i], after[i]) {
			continue
		}
		b := t.indexBucket(ix.name)
		if before[i] != nil {
			if err := b.Delete(before[i]); err != nil {
				return fmt.Errorf("index %s by %s: %w", t.name, ix.name, err)
			}
		}
		if after[i] != nil {
			if err := b.Put(after[i], id); err != nil {
				return fmt.Errorf("index %s by %s: %w", t.name, ix.name, err)
			}
		}
	}
	return nil
}

// entries returns record's key in each index, nil where the index omits it.
func (t Table[T]) entries(record *T) [][]byte {
	entries := make([][]byte, len(t.indexes))
	for i, ix := range t.indexes {
		entries[i] = bytes.Clone(ix.key(record))
		if entries[i] != nil && !ix.unique {
			entries[i] = append(append(entries[i], separator), t.id(record)...)
		}
	}
	return entries
}

// Count returns the number of records. It walks the table's pages.
func (t Table[T]) Count() int { return t.bucket().Len() }

// All calls visit with every record, oldest first, until it returns an error.
// visit must not change the table.
func (t Table[T]) All(visit func(T) error) error {
	return t.bucket().ForEach(func(id, data []byte) error {
		var record T
		if err := decodeRecord(t.name+"/"+string(id), data, &record); err != nil {
			return err
		}
		return visit(record)
	})
}

// After returns up to limit records with higher ids, oldest first. It skips damaged records.
func (t Table[T]) After(id string, limit int) (records []T) {
	cursor := t.bucket().Cursor()
	k, _ := cursor.Seek([]byte(id))
	if k != nil && string(k) == id {
		k, _ = cursor.Next()
	}
	for ; k != nil && len(records) < limit; k, _ = cursor.Next() {
		if record, err := t.Get(string(k)); err == nil {
			records = append(records, record)
		}
	}
	return records
}

// Where returns the records that match, oldest first.
func (t Table[T]) Where(matches func(T) bool) (records []T, err error) {
	err = t.All(func(record T) error {
		if matches(record) {
			records = append(records, record)
		}
		return nil
	})
	return records, err
}

// Newest returns up to limit records with key in the index, newest first, starting
// after the record with the id after ("" from the start), and whether there are
// more.
func (t Table[T]) Newest(indexName string, key []byte, after string, limit int) ([]T, bool, error) {
	prefix := append(bytes.Clone(key), separator)
	cursor := t.indexBucket(indexName).Cursor()
	var records []T
	for k, id := seekBefore(cursor, prefix, []byte(after)); bytes.HasPrefix(k, prefix); k, id = cursor.Prev() {
		if len(records) == limit {
			return records, true, nil
		}
		record, err := t.indexed(indexName, id)
		if err != nil {
			return nil, false, err
		}
		records = append(records, record)
	}
	return records, false, nil
}

// Oldest returns up to limit records with key in the index, oldest first, starting after
// the record with the id after ("" from the start). It skips damaged records.
func (t Table[T]) Oldest(indexName string, key []byte, after string, limit int) (records []T) {
	t.oldest(indexName, key, after, func(id []byte) bool {
		if record, err := t.indexed(indexName, id); err == nil {
			records = append(records, record)
		}
		return len(records) < limit
	})
	return records
}

// NewestID returns the id of the newest record with key in the index, "" if there is
// none, without reading the record.
func (t Table[T]) NewestID(indexName string, key []byte) string {
	prefix := append(bytes.Clone(key), separator)
	k, id := seekBefore(t.indexBucket(indexName).Cursor(), prefix, nil)
	if !bytes.HasPrefix(k, prefix) {
		return ""
	}
	return string(id)
}

// OldestIDs returns the ids of up to limit records with key in the index, oldest first,
// without reading the records.
func (t Table[T]) OldestIDs(indexName string, key []byte, limit int) (ids []string) {
	t.oldest(indexName, key, "", func(id []byte) bool {
		ids = append(ids, string(id))
		return len(ids) < limit
	})
	return ids
}

// HasAtLeast reports whether n records have key in the index, without reading them.
func (t Table[T]) HasAtLeast(indexName string, key []byte, n int) bool {
	return len(t.OldestIDs(indexName, key, n)) >= n
}

// oldest calls visit with the ids of the records with key in the index, until it returns false.
func (t Table[T]) oldest(indexName string, key []byte, after string, visit func(id []byte) bool) {
	prefix := append(bytes.Clone(key), separator)
	cursor := t.indexBucket(indexName).Cursor()
	start := append(bytes.Clone(prefix), after...)
	k, id := cursor.Seek(start)
	if after != "" && bytes.Equal(k, start) {
		k, id = cursor.Next()
	}
	for ; bytes.HasPrefix(k, prefix) && visit(id); k, id = cursor.Next() {
	}
}

// SearchBound is the maximum number of records that one search examines.
const SearchBound = 1000

// Search is Newest for the records that match. It examines at most SearchBound
// records. next is the id after which another search continues, "" at the end;
// records may be fewer than limit, or none, and next still be set.
func (t Table[T]) Search(indexName string, key []byte, after string, limit int, matches func(T) bool) (records []T, next string, err error) {
	prefix := append(bytes.Clone(key), separator)
	cursor := t.indexBucket(indexName).Cursor()
	examined, last := 0, ""
	for k, id := seekBefore(cursor, prefix, []byte(after)); bytes.HasPrefix(k, prefix); k, id = cursor.Prev() {
		if examined++; examined > SearchBound {
			return records, last, nil
		}
		record, err := t.indexed(indexName, id)
		if err != nil {
			return nil, "", err
		}
		if matches(record) {
			if len(records) == limit {
				return records, last, nil
			}
			records = append(records, record)
		}
		last = string(id)
	}
	return records, "", nil
}

// all returns every record with key in the index, newest first.
func (t Table[T]) all(indexName string, key []byte) ([]T, error) {
	records, _, err := t.Newest(indexName, key, "", math.MaxInt)
	return records, err
}

// Before returns up to limit records whose index key is less than bound, in key
// order. It skips unreadable records and joins their errors.
func (t Table[T]) Before(indexName string, bound []byte, limit int) ([]T, error) {
	cursor := t.indexBucket(indexName).Cursor()
	var records []T
	var errs []error
	for k, id := cursor.First(); k != nil && bytes.Compare(k, bound) < 0 && len(records) < limit; k, id = cursor.Next() {
		record, err := t.indexed(indexName, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		records = append(records, record)
	}
	return records, errors.Join(errs...)
}

// seekBefore moves the cursor to the last key before prefix+after, or to the last
// one with prefix if after is empty. The key may sort before prefix.
func seekBefore(cursor boltCursor, prefix, after []byte) (key, value []byte) {
	bound := append(bytes.Clone(prefix), after...)
	if len(after) == 0 {
		bound[len(bound)-1]++ // the separator: one past every key with prefix
	}
	return lastBefore(cursor, bound)
}

// lastBefore moves the cursor to the last key before bound, or to the last key of
// all if bound is empty.
func lastBefore(cursor boltCursor, bound []byte) (key, value []byte) {
	if len(bound) == 0 {
		return cursor.Last()
	}
	if k, _ := cursor.Seek(bound); k == nil {
		return cursor.Last()
	}
	return cursor.Prev()
}
