package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"holdfast/engine/model"
)

// The audit bucket contains one bucket of entries per organization, numbered from
// 1, and one for entries without an organization. Separate buckets hold, by
// organization, a mark of the newest entry (the head), a mark of the newest pruned
// entry (the anchor), and the index.
const (
	auditBucket        = "audit"
	auditHeadsBucket   = "audit.heads"
	auditAnchorsBucket = "audit.anchors"
	auditIndexBucket   = "audit.index"
	noOrganization     = "-"
)

// Chain configures how audit entries are chained and how many are kept per
// organization.
type Chain struct {
	// Key is the key of the chain's hashes (HMAC-SHA-256). It is not in this file, so
	// write access to the metadata is not enough to forge a chain that verifies.
	Key []byte
	// Keep and KeepBytes limit the number of entries and their size; 0 is no limit.
	Keep, KeepBytes uint64
	// Broken is called after the commit of an entry that starts a new segment of
	// the chain because the entry before it is damaged or missing.
	Broken func(organization string, number uint64, why string)
}

// AppendAudit appends entries to the chains of their organizations and fills in
// their hashes. It prunes entries beyond the limits, a few at a time.
func (tx *Tx) AppendAudit(chain Chain, entries ...*model.AuditEntry) error {
	logs := map[string]*auditLog{}
	if tx.batch != nil {
		logs = tx.batch.logs
	}
	for _, entry := range entries {
		log, err := tx.auditLog(chain, logs, entry.Organization)
		if err != nil {
			return err
		}
		if err := log.append(entry); err != nil {
			return err
		}
	}
	if tx.batch != nil { // the batch closes them
		return nil
	}
	return closeAuditLogs(logs)
}

func closeAuditLogs(logs map[string]*auditLog) error {
	for _, log := range logs {
		if err := log.close(); err != nil {
			return err
		}
	}
	return nil
}

// auditLog is the log of one organization during a transaction that writes to it.
type auditLog struct {
	tx           *Tx
	chain        Chain
	organization string
	entries      *boltBucket
	index        *boltBucket
	head         auditMark
	anchor       *auditMark // set once an entry was pruned
	hash         hasher
	oldest       uint64            // number of the oldest entry, 0 = not read yet
	latest       time.Time         // of the entries since the clock was last set back
	known        map[string][]byte // index terms
	key          []byte            // index key, a reused buffer
}

func (tx *Tx) auditLog(chain Chain, open map[string]*auditLog, organization string) (*auditLog, error) {
	if log, ok := open[organization]; ok {
		return log, nil
	}
	log, err := tx.openAuditLog(chain, organization)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	open[organization] = log
	return log, log.checkHead()
}

func (tx *Tx) openAuditLog(chain Chain, organization string) (*auditLog, error) {
	log := &auditLog{tx: tx, chain: chain, organization: organization, hash: newHasher(chain.Key), known: map[string][]byte{}}
	var err error
	if log.entries, err = tx.bolt.Bucket([]byte(auditBucket)).CreateBucketIfNotExists(auditName(organization)); err != nil {
		return nil, err
	}
	if log.index, err = tx.bolt.Bucket([]byte(auditIndexBucket)).CreateBucketIfNotExists(auditName(organization)); err != nil {
		return nil, err
	}
	log.entries.AppendOnly()
	return log, nil
}

// checkHead reads the head and checks that it matches the newest entry. If it does
// not, the next entry starts a new segment: the log continues, and VerifyAudit
// reports the break.
func (log *auditLog) checkHead() error {
	head, why := log.tx.readMark(log.hash, auditHeadsBucket, log.organization)
	key, data := log.entries.Cursor().Last()
	log.latest, _ = auditTime(data) // zero for none or a damaged one
	switch {
	case why == "" && head.Number != log.entries.Sequence():
		why = fmt.Sprintf("the record of entry %d is not that of the newest, %d", head.Number, log.entries.Sequence())
	case why == "" && key == nil && head.Number > 0: // the newest is never pruned
		why = fmt.Sprintf("the entries to %d were removed", head.Number)
	case why == "" && key != nil:
		why = head.describes(key, data)
	}
	log.head = head
	if why == "" {
		return nil
	}
	newest := max(head.Number, log.entries.Sequence())
	if key != nil {
		newest = max(newest, binary.BigEndian.Uint64(key))
	}
	log.head = auditMark{Number: newest, Bytes: log.size()}
	if then := log.chain.Broken; then != nil {
		log.tx.OnCommit(func() { then(log.organization, newest+1, why) })
	}
	return nil
}

// size adds up the size of the entries, for when the head cannot be trusted.
func (log *auditLog) size() (bytes uint64) {
	_ = log.entries.ForEach(func(_, data []byte) error { bytes += uint64(len(data)); return nil })
	return bytes
}

func (log *auditLog) append(entry *model.AuditEntry) error {
	entry.PreviousHash = log.head.Hash
	data, err := log.hash.seal(entry)
	if err != nil {
		return err
	}
	number := log.head.Number + 1
	if err := log.entries.Put(auditKey(number), data); err != nil {
		return fmt.Errorf("store audit entry: %w", err)
	}
	if err := log.indexEntry(number, entry); err != nil {
		return err
	}
	if err := log.indexTime(number, entry.At); err != nil {
		return err
	}
	log.head = auditMark{Number: number, Hash: entry.Hash, Bytes: log.head.Bytes + uint64(len(data))}
	return log.prune()
}

// close writes the marks that changed.
func (log *auditLog) close() error {
	if err := log.entries.SetSequence(log.head.Number); err != nil {
		return fmt.Errorf("number audit entries: %w", err)
	}
	if err := log.writeMark(auditHeadsBucket, log.head); err != nil {
		return err
	}
	if log.anchor == nil {
		return nil
	}
	return log.writeMark(auditAnchorsBucket, *log.anchor)
}

func decodeAudit(organization string, key, data []byte) (model.AuditEntry, error) {
	var entry model.AuditEntry
	err := decodeRecord(fmt.Sprintf("audit/%s/%d", organization, binary.BigEndian.Uint64(key)), data, &entry)
	return entry, err
}

func auditName(organization string) []byte {
	if organization == "" {
		return []byte(noOrganization)
	}
	return []byte(organization)
}

func auditKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// auditMark records one entry separately from the log, so that truncation at
// either end is detected.
type auditMark struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
	// Bytes is the size of all entries; only the head has it.
	Bytes uint64 `json:"bytes"`
	// Damaged means, in the anchor, that the pruned entry was damaged.
	Damaged bool `json:"damaged"`
	// MAC authenticates the other fields, the bucket and the organization.
	MAC string `json:"mac"`
}

// describes returns why the entry does not match the mark, "" if it does.
func (m auditMark) describes(key, data []byte) string {
	number := binary.BigEndian.Uint64(key)
	text, err := unframe("", data)
	switch {
	case number != m.Number:
		return fmt.Sprintf("the newest entry is %d, not %d", number, m.Number)
	case err != nil || !bytes.HasSuffix(text, hashEnd(m.Hash)):
		return fmt.Sprintf("entry %d was changed or damaged", number)
	default:
		return ""
	}
}

// readMark returns a mark, zero if there is none, and why it cannot be trusted, ""
// if it can.
func (tx *Tx) readMark(hash hasher, bucket, organization string) (mark auditMark, why string) {
	data := tx.bolt.Bucket([]byte(bucket)).Get(auditName(organization))
	if data == nil {
		return mark, ""
	}
	if err := decodeRecord(bucket+"/"+organization, data, &mark); err != nil {
		return auditMark{}, err.Error()
	}
	if mac := mark.MAC; hash.mark(bucket, organization, mark) != mac {
		return auditMark{}, "the record in " + bucket + " was changed"
	}
	return mark, ""
}

func (log *auditLog) writeMark(bucket string, mark auditMark) error {
	mark.MAC = log.hash.mark(bucket, log.organization, mark)
	data, err := encodeRecord(mark)
	if err != nil {
		return err
	}
	return log.tx.bolt.Bucket([]byte(bucket)).Put(auditName(log.organization), data)
}
