package recovery

import (
	"encoding/json"
	"time"

	"holdfast/engine/meta"
)

// Pace is how quickly this machine did something, from sums over its runs. The
// latest weigh most: each run makes those before it count for less.
type Pace struct {
	Runs  float64 `json:"runs"`
	Bytes float64 `json:"bytes"`   // sum over the runs
	Time  float64 `json:"seconds"` // sum
	BB    float64 `json:"bytes_squared"`
	BT    float64 `json:"bytes_seconds"`
	Most  float64 `json:"most_bytes"` // of one run
}

// paceFade is by how much each run makes those before it count for less.
const paceFade = 0.8

func (p Pace) With(bytes int64, took time.Duration) Pace {
	b, t := float64(bytes), took.Seconds()
	return Pace{
		Runs: p.Runs*paceFade + 1, Bytes: p.Bytes*paceFade + b, Time: p.Time*paceFade + t,
		BB: p.BB*paceFade + b*b, BT: p.BT*paceFade + b*t, Most: max(p.Most, b),
	}
}

// proportional estimates what takes as long as there are bytes, in seconds.
func (p Pace) proportional(bytes int64) (seconds float64, known bool) {
	if p.Bytes <= 0 {
		return 0, false
	}
	return p.Time / p.Bytes * float64(bytes), true
}

// linear estimates what takes some time whatever there is to do, and more for
// each byte, in seconds. Runs of about the same size do not say how much more: then
// nothing is known of what is far larger than they were.
func (p Pace) linear(bytes int64) (seconds float64, known bool) {
	if p.Runs == 0 {
		return 0, false
	}
	mean, b := p.Time/p.Runs, float64(bytes)
	spread := p.Runs*p.BB - p.Bytes*p.Bytes
	if spread > 0.1*p.Runs*p.BB {
		slope := max(0, (p.Runs*p.BT-p.Bytes*p.Time)/spread)
		return max(0, mean+slope*(b-p.Bytes/p.Runs)), true
	}
	return mean, b <= max(2*p.Most, paceSmall)
}

// paceSmall is how many bytes of WAL are replayed in a second or two anywhere. The
// rest of a segment counts as WAL, so a quiet database has some segments of it.
const paceSmall = 64 << 20

// RestorePace is how quickly this machine restores: writes the files of a backup,
// and does the rest, which grows with the WAL to be replayed.
type RestorePace struct {
	Unpack Pace `json:"unpack"`
	Rest   Pace `json:"rest"`
}

// The settings that keep what was measured. Restores that people ask for use the
// whole machine, verifications as little of it as they can.
const (
	restorePaceSetting      = "pace.restore"
	verificationPaceSetting = "pace.verification"
)

// notePace keeps what one run has shown: how long the files of the plan's backup
// took, and everything else.
func (s *Service) notePace(setting string, p RestorePlan, unpack, rest time.Duration) {
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		now := readPace(tx, setting)
		now.Unpack = now.Unpack.With(p.Backup.SizeBytes, unpack)
		now.Rest = now.Rest.With(p.WALBytes(), rest)
		text, err := json.Marshal(now)
		if err != nil {
			return err
		}
		return tx.PutSetting(setting, text)
	})
	if err != nil {
		s.core.Log.Warn("keep how long a restore took", "backup", p.Backup.ID, "error", err)
	}
}

// readPace returns what is known, which is nothing where it cannot be read.
func readPace(tx *meta.Tx, setting string) (p RestorePace) {
	if json.Unmarshal(tx.Setting(setting), &p) != nil {
		return RestorePace{}
	}
	return p
}

// estimate returns about how long the restore takes by what was measured on this
// machine, by restores or else by verifications; nil when neither says.
func (s *Service) estimate(p RestorePlan) (*time.Duration, error) {
	var about *time.Duration
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		for _, setting := range []string{restorePaceSetting, verificationPaceSetting} {
			if about = readPace(tx, setting).Of(p); about != nil {
				break
			}
		}
		return nil
	})
	return about, err
}

func (r RestorePace) Of(p RestorePlan) *time.Duration {
	unpack, known := r.Unpack.proportional(p.Backup.SizeBytes)
	rest, alsoKnown := r.Rest.linear(p.WALBytes())
	if !known || !alsoKnown {
		return nil
	}
	about := time.Duration((unpack + rest) * float64(time.Second)).Round(time.Millisecond)
	return &about
}
