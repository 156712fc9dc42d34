package objects

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
)

// journalDamageKept is how long damage in the journal is reported and its segment is kept.
const journalDamageKept = 30 * 24 * time.Hour

// journalDamageSetting is the setting that records damage in the journal.
const journalDamageSetting = "journal.damaged"

// maxJournalDamage limits the number of recorded damages.
const maxJournalDamage = 1000

// journalDamage is an acknowledged record of the journal that could not be applied to the metadata.
type journalDamage struct {
	Position blobstore.Position `json:"position"`
	Reason   string             `json:"reason"`
	FoundAt  time.Time          `json:"found_at"`
}

// JournalDamages returns the known damage in the journal. It ignores a damage record that is itself unreadable.
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

// noteJournalDamage records damage in the transaction that skips it, and logs it.
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
