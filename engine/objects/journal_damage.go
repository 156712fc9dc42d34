package objects

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
)

// journalDamageKept is for how long damage of the journal is shown, and the
// segment with it kept.
const journalDamageKept = 30 * 24 * time.Hour

// journalDamageSetting is the name under which it is remembered.
const journalDamageSetting = "journal.damaged"

// maxJournalDamage bounds how much damage is remembered.
const maxJournalDamage = 1000

// journalDamage is an acknowledged record of the journal that the metadata could
// not be brought up to.
type journalDamage struct {
	Position blobstore.Position `json:"position"`
	Reason   string             `json:"reason"`
	FoundAt  time.Time          `json:"found_at"`
}

// JournalDamages returns what of the journal is known to be damaged. What is
// remembered of it need not be readable itself.
func JournalDamages(tx *meta.Tx, now time.Time) (found []journalDamage) {
	var all []journalDamage
	_ = json.Unmarshal(tx.Setting(journalDamageSetting), &all)
	for _, d := range all {
		if now.Sub(d.FoundAt) < journalDamageKept {
			found = append(found, d)
		}
	}
	return found
}

// noteJournalDamage remembers damage in the transaction that passes it over, and
// logs it.
func (s *Service) noteJournalDamage(tx *meta.Tx, position blobstore.Position, cause error) error {
	tx.OnCommit(func() {
		s.core.Log.Error("a record of the journal was acknowledged and cannot be read or carried out: an object or its deletion may be missing; its segment is kept",
			"position", fmt.Sprintf("%x", uint64(position)), "segment", position.Segment(), "error", cause)
	})
	now := s.core.Clock()
	all := append(JournalDamages(tx, now), journalDamage{position, cause.Error(), now})
	text, err := json.Marshal(all[max(0, len(all)-maxJournalDamage):])
	if err != nil {
		return err
	}
	return tx.PutSetting(journalDamageSetting, text)
}
