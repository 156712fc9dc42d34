package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// pruneBatch limits how much one append prunes. It is more than one, so that a
// lowered limit is reached eventually.
const pruneBatch = 4

// prune removes entries beyond the chain's limits, oldest first.
func (log *auditLog) prune() error {
	for range pruneBatch {
		if log.oldest > 0 && !log.tooMany(log.oldest) {
			return nil
		}
		key, data := log.entries.Cursor().First()
		log.oldest = binary.BigEndian.Uint64(key) // never nil: an entry was just appended
		if !log.tooMany(log.oldest) {
			return nil
		}
		if err := log.remove(key, data); err != nil {
			return err
		}
	}
	return nil
}

func (log *auditLog) tooMany(oldest uint64) bool {
	keep, bytes := log.chain.Keep, log.chain.KeepBytes
	return oldest < log.head.Number && (keep > 0 && log.head.Number-oldest >= keep || bytes > 0 && log.head.Bytes > bytes)
}

// remove deletes the oldest entry. The anchor keeps its hash, so that the rest of
// the chain can still be verified. A damaged entry is removed too; otherwise
// nothing more could be audited.
func (log *auditLog) remove(key, data []byte) error {
	number := binary.BigEndian.Uint64(key)
	anchor := &auditMark{Number: number, Damaged: true}
	entry, err := decodeAudit(log.organization, key, data)
	if err == nil {
		anchor.Hash, anchor.Damaged = entry.Hash, false
		if err := log.unindexEntry(number, &entry); err != nil {
			return err
		}
	}
	if err := log.index.Delete(setBackKey(number)); err != nil {
		return fmt.Errorf("prune audit entry: %w", err)
	}
	log.head.Bytes -= min(log.head.Bytes, uint64(len(data)))
	if err := log.entries.Delete(bytes.Clone(key)); err != nil {
		return fmt.Errorf("prune audit entry: %w", err)
	}
	log.anchor, log.oldest = anchor, 0
	return nil
}

// PruneAudit removes up to limit entries of an organization that are older than
// before, and reports whether there may be more. It keeps the newest entry.
func (tx *Tx) PruneAudit(chain Chain, organization string, before time.Time, limit int) (more bool, err error) {
	if tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization)) == nil {
		return false, nil
	}
	log, err := tx.auditLog(chain, map[string]*auditLog{}, organization)
	if err != nil {
		return false, err
	}
	for range limit {
		key, data := log.entries.Cursor().First()
		if key == nil || binary.BigEndian.Uint64(key) >= log.head.Number {
			return false, log.close()
		}
		if at, ok := auditTime(data); ok && !at.Before(before) {
			return false, log.close()
		}
		if err := log.remove(key, data); err != nil {
			return false, err
		}
	}
	return true, log.close()
}

// auditTime reads the time of a stored entry without decoding the rest.
func auditTime(data []byte) (time.Time, bool) {
	const name = `","at":"`
	if len(data) < recordHeader {
		return time.Time{}, false
	}
	text := data[recordHeader:]
	begin := bytes.Index(text[:min(len(text), 256)], []byte(name))
	if begin < 0 {
		return time.Time{}, false
	}
	rest := text[begin+len(name):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(rest[:end]))
	return at, err == nil
}
