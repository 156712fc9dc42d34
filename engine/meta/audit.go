package meta

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"holdfast/engine/model"
)

// The audit bucket holds a bucket of entries for each organization, by number
// from 1, and one for what belongs to no organization. In the settings lie
// the hashes of the newest entry that was pruned, where each chain begins.
const (
	auditBucket    = "audit"
	noOrganization = "-"
	auditAnchor    = "audit_anchor."
)

// AppendAudit adds entry to the chain of its organization and fills in its
// hashes. Entries beyond the newest keep are pruned, a few at a time; the hash
// the rest of the chain begins with is kept, so that it can still be checked.
func (tx *Tx) AppendAudit(entry *model.AuditEntry, keep uint64) error {
	b, err := tx.bolt.Bucket([]byte(auditBucket)).CreateBucketIfNotExists(auditName(entry.Organization))
	if err != nil {
		return fmt.Errorf("make audit bucket: %w", err)
	}
	b.FillPercent = 0.95 // entries are only ever appended
	if entry.PreviousHash, err = tx.head(b, entry.Organization); err != nil {
		return err
	}
	text, err := sealAudit(entry)
	if err != nil {
		return err
	}
	number, err := b.NextSequence()
	if err != nil {
		return fmt.Errorf("number audit entry: %w", err)
	}
	if err := b.Put(auditKey(number), frame(text)); err != nil {
		return fmt.Errorf("store audit entry: %w", err)
	}
	if tx.heads == nil {
		tx.heads = map[string]string{}
	}
	tx.heads[entry.Organization] = entry.Hash
	return tx.pruneAudit(b, entry.Organization, number, keep)
}

// head returns the hash the next entry follows: that of the newest entry, or
// of the newest pruned one.
func (tx *Tx) head(b *bbolt.Bucket, organization string) (string, error) {
	if hash, ok := tx.heads[organization]; ok {
		return hash, nil
	}
	key, data := b.Cursor().Last()
	if key == nil {
		return string(tx.Setting(auditAnchor + organization)), nil
	}
	last, err := decodeAudit(organization, key, data)
	return last.Hash, err
}

// pruneBatch bounds how much one append prunes; it is more than one, so that
// a lowered limit is reached in time.
const pruneBatch = 4

func (tx *Tx) pruneAudit(b *bbolt.Bucket, organization string, newest, keep uint64) error {
	cursor := b.Cursor()
	for range pruneBatch {
		key, data := cursor.First()
		if key == nil || keep == 0 || newest-binary.BigEndian.Uint64(key) < keep {
			return nil
		}
		// A damaged entry goes too, or nothing could be audited any more. The
		// anchor stays, so that VerifyAudit says that something is missing.
		if entry, err := decodeAudit(organization, key, data); err == nil {
			if err := tx.PutSetting(auditAnchor+organization, []byte(entry.Hash)); err != nil {
				return err
			}
		}
		if err := b.Delete(key); err != nil {
			return fmt.Errorf("prune audit entry: %w", err)
		}
	}
	return nil
}

// AuditPage returns up to limit entries of an organization, newest first,
// after skipping skip of them, and whether there are more.
func (tx *Tx) AuditPage(organization string, skip uint64, limit int) ([]model.AuditEntry, bool, error) {
	b := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization))
	if b == nil || skip >= b.Sequence() {
		return nil, false, nil
	}
	var entries []model.AuditEntry
	cursor := b.Cursor()
	key, data := lastBefore(cursor, auditKey(b.Sequence()-skip+1))
	for ; key != nil && len(entries) < limit; key, data = cursor.Prev() {
		entry, err := decodeAudit(organization, key, data)
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, entry)
	}
	return entries, key != nil, nil
}

// VerifyAudit walks an organization's chain from its oldest kept entry and
// returns how many entries it has. An entry that was changed, removed or
// reordered is an error that says where.
func (tx *Tx) VerifyAudit(organization string) (int, error) {
	b := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization))
	if b == nil {
		return 0, nil
	}
	count, last, previous := 0, uint64(0), string(tx.Setting(auditAnchor+organization))
	err := b.ForEach(func(key, data []byte) error {
		entry, err := decodeAudit(organization, key, data)
		if err != nil {
			return err
		}
		last = binary.BigEndian.Uint64(key)
		if entry.PreviousHash != previous {
			return fmt.Errorf("audit entry %d (%s) does not follow the one before it", last, entry.ID)
		}
		if hash, ok := hashAudit(data[recordHeader:], entry.Hash); !ok || hash != entry.Hash {
			return fmt.Errorf("audit entry %d (%s) was changed", last, entry.ID)
		}
		count, previous = count+1, entry.Hash
		return nil
	})
	if err == nil && last != b.Sequence() {
		err = fmt.Errorf("the audit entries from %d to %d were removed", last+1, b.Sequence())
	}
	return count, err
}

func decodeAudit(organization string, key, data []byte) (model.AuditEntry, error) {
	var entry model.AuditEntry
	err := decodeRecord(fmt.Sprintf("audit/%s/%d", organization, binary.BigEndian.Uint64(key)), data, &entry)
	return entry, err
}

// sealAudit fills in the entry's hash and returns the text to store.
func sealAudit(entry *model.AuditEntry) ([]byte, error) {
	entry.Hash = ""
	text, err := json.Marshal(entry)
	if err != nil {
		return nil, fmt.Errorf("encode audit entry: %w", err)
	}
	hash, ok := hashAudit(text, "")
	if !ok {
		return nil, errors.New("encode audit entry: the hash is not at its end")
	}
	entry.Hash = hash
	return append(bytes.TrimSuffix(text, hashEnd("")), hashEnd(hash)...), nil
}

// hashAudit hashes the stored text of an entry with its own hash left empty,
// and so with the hash of the entry before it. It hashes the text, not the
// entry: fields that are added later, and what JSON makes of invalid UTF-8,
// leave the hash as it was.
func hashAudit(text []byte, hash string) (string, bool) {
	text, ok := bytes.CutSuffix(text, hashEnd(hash))
	digest := sha256.New()
	digest.Write(text)
	digest.Write(hashEnd(""))
	return hex.EncodeToString(digest.Sum(nil)), ok
}

// hashEnd is how an entry's text ends.
func hashEnd(hash string) []byte { return []byte(`,"hash":"` + hash + `"}`) }

func auditName(organization string) []byte {
	if organization == "" {
		return []byte(noOrganization)
	}
	return []byte(organization)
}

func auditKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }
