package recovery

import (
	"encoding/json"
	"time"

	"holdfast/engine/meta"
)

// upgradePaceSetting stores the measurements of upgrades and dry runs: Unpack is the copy of the data, Rest what follows.
const upgradePaceSetting = "pace.upgrade"

// noteUpgradePace adds a run to the measurements. A dry run has no copy.
func (s *Service) noteUpgradePace(size int64, cloning, rest time.Duration) {
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		now := readPace(tx, upgradePaceSetting)
		if cloning > 0 {
			now.Unpack = now.Unpack.with(size, cloning)
		}
		now.Rest = now.Rest.with(size, rest)
		text, err := json.Marshal(now)
		if err != nil {
			return err
		}
		return tx.PutSetting(upgradePaceSetting, text)
	})
	if err != nil {
		s.core.Log.Warn("keep how long an upgrade took", "error", err)
	}
}

// estimateCopy returns about how long the copy of a database's files takes: it is measured at upgrades, and else a
// restore writes as much. On a file system with clones it takes no time worth mentioning.
func (s *Service) estimateCopy(database string, size int64) time.Duration {
	if s.CanClone(s.databases.DatabaseDirectory(database)) {
		return 0
	}
	var seconds float64
	_ = s.core.Meta.View(func(tx *meta.Tx) error { // without an answer it is 0
		known := false
		for _, setting := range []string{upgradePaceSetting, restorePaceSetting, verificationPaceSetting} {
			if seconds, known = readPace(tx, setting).Unpack.proportional(size); known {
				break
			}
		}
		return nil
	})
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}

// estimateUpgrade returns about how long an upgrade keeps a database down, 0 if this machine has not upgraded one of
// that size, also not on trial.
func (s *Service) estimateUpgrade(database string, size int64) time.Duration {
	known, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (restorePace, error) { return readPace(tx, upgradePaceSetting), nil })
	seconds, fits := known.Rest.linear(size)
	if err != nil || !fits {
		return 0
	}
	return s.estimateCopy(database, size) + time.Duration(seconds*float64(time.Second)).Round(time.Millisecond)
}
