package meta

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"holdfast/engine/model"
)

// AuditQuery selects audit entries for a person, who knows names and areas rather
// than ids; an empty field matches everything. Unlike an AuditFilter, it is
// answered by scanning.
type AuditQuery struct {
	Action  string // the action, or a prefix of it up to a dot
	Outcome model.Outcome
	Actor   string // the actor's id or name
	Target  string // the resource's id or name
	IP      string
	// Since and Until limit the time: at or after Since, before Until.
	Since, Until time.Time
}

// searchBound is the maximum number of entries one search reads: matches may be
// rare, and a page must still be fast.
const searchBound = 25_000

// SearchAudit returns up to limit entries of an organization that match query,
// newest first, with numbers below before (0 to start at the newest), and the
// number to continue from, 0 at the end. It may return fewer than limit entries
// and still a number to continue from.
func (tx *Tx) SearchAudit(organization string, query AuditQuery, before uint64, limit int) ([]model.AuditEntry, uint64, error) {
	b := tx.bolt.Bucket([]byte(auditBucket)).Bucket(auditName(organization))
	if b == nil {
		return nil, 0, nil
	}
	index := tx.bolt.Bucket([]byte(auditIndexBucket)).Bucket(auditName(organization))
	if index == nil {
		return nil, 0, &CorruptError{Where: auditIndexBucket + "/" + organization}
	}
	oldest, newest := auditBetween(b, index, query.Since, query.Until)
	if before > 0 {
		newest = min(newest, before-1)
	}
	walk := auditWalk{filter: AuditFilter{Since: query.Since, Until: query.Until}}
	needles := query.needles()
	var entries []model.AuditEntry
	cursor := b.Cursor()
	key, data := lastBefore(cursor, auditKey(newest+1))
	for seen := 0; key != nil; key, data = cursor.Prev() {
		if len(entries) == limit || seen == searchBound {
			return entries, binary.BigEndian.Uint64(key) + 1, nil
		}
		if binary.BigEndian.Uint64(key) < oldest {
			break
		}
		seen++
		if !walk.inTime(data) || !containsAll(data, needles) {
			continue
		}
		entry, err := decodeAudit(organization, key, data)
		if err == nil && query.matches(entry) { // VerifyAudit reports damaged ones
			entries = append(entries, entry)
		}
	}
	return entries, 0, nil
}

// needles returns texts that the stored form of every match contains. Searching for
// them costs a hundredth of decoding the entry.
func (q AuditQuery) needles() [][]byte {
	var needles [][]byte
	for _, text := range []string{q.Action, string(q.Outcome), q.Actor, q.Target, q.IP} {
		if text == "" {
			continue
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			continue
		}
		needles = append(needles, quoted[1:len(quoted)-1])
	}
	return needles
}

func containsAll(data []byte, needles [][]byte) bool {
	for _, needle := range needles {
		if !bytes.Contains(data, needle) {
			return false
		}
	}
	return true
}

func (q AuditQuery) matches(e model.AuditEntry) bool {
	action := string(e.Action)
	return (q.Action == "" || action == q.Action || strings.HasPrefix(action, q.Action+".")) &&
		(q.Outcome == "" || e.Outcome == q.Outcome) &&
		(q.Actor == "" || e.Actor.ID == q.Actor || e.Actor.Name == q.Actor) &&
		(q.IP == "" || e.IP == q.IP) &&
		(q.Target == "" || e.Resource.ID == q.Target || e.Resource.Name == q.Target)
}
