package recovery

import (
	"encoding/json"
	"time"

	"holdfast/engine/meta"
)

// pace estimates how long a step takes on this machine, from sums over its past
// runs. Recent runs weigh most: each run reduces the weight of those before it.
type pace struct {
	Runs  float64 `json:"runs"`
	Bytes float64 `json:"bytes"`   // sum over the runs
	Time  float64 `json:"seconds"` // sum
	BB    float64 `json:"bytes_squared"`
	BT    float64 `json:"bytes_seconds"`
	Most  float64 `json:"most_bytes"` // of one run
}

// paceDecay is the factor by which each run reduces the weight of earlier ones.
const paceDecay = 0.8

// with returns the pace after another run.
func (p pace) with(bytes int64, took time.Duration) pace {
	b, t := float64(bytes), took.Seconds()
	return pace{
		Runs: p.Runs*paceDecay + 1, Bytes: p.Bytes*paceDecay + b, Time: p.Time*paceDecay + t,
		BB: p.BB*paceDecay + b*b, BT: p.BT*paceDecay + b*t, Most: max(p.Most, b),
	}
}

// proportional estimates a step whose time is proportional to its bytes, in
// seconds.
func (p pace) proportional(bytes int64) (seconds float64, known bool) {
	if p.Bytes <= 0 {
		return 0, false
	}
	return p.Time / p.Bytes * float64(bytes), true
}

// linear estimates a step that takes a fixed time and more for each byte, in
// seconds. Runs of about the same size do not determine the slope, and neither do small
// ones, whose times differ for other reasons: then the time of a far larger run is unknown.
func (p pace) linear(bytes int64) (seconds float64, known bool) {
	if p.Runs == 0 {
		return 0, false
	}
	mean, b := p.Time/p.Runs, float64(bytes)
	spread := p.Runs*p.BB - p.Bytes*p.Bytes
	if p.Most >= paceSmall && spread > 0.1*p.Runs*p.BB {
		slope := max(0, (p.Runs*p.BT-p.Bytes*p.Time)/spread)
		return max(0, mean+slope*(b-p.Bytes/p.Runs)), true
	}
	return mean, b <= max(2*p.Most, paceSmall)
}

// paceSmall is how many bytes of WAL any machine replays in a second or two. A segment always counts as a whole, so
// even an idle database has some WAL.
const paceSmall = 64 << 20

// restorePace estimates how long this machine takes to restore: to write the files
// of a backup, and for the rest, which grows with the WAL to be replayed.
type restorePace struct {
	Unpack pace `json:"unpack"`
	Rest   pace `json:"rest"`
}

// The settings that store the measurements. Restores use the whole machine, verifications as little of it as possible.
const (
	restorePaceSetting      = "pace.restore"
	verificationPaceSetting = "pace.verification"
)

// notePace adds a run to the measurements: how long it took to unpack the plan's backup, and to do everything else.
func (s *Service) notePace(setting string, p RestorePlan, unpack, rest time.Duration) {
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		now := readPace(tx, setting)
		now.Unpack = now.Unpack.with(p.Backup.SizeBytes, unpack)
		now.Rest = now.Rest.with(p.WALBytes(), rest)
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

// readPace returns the measurements, or none if they are unreadable.
func readPace(tx *meta.Tx, setting string) (p restorePace) {
	if json.Unmarshal(tx.Setting(setting), &p) != nil {
		return restorePace{}
	}
	return p
}

// estimate returns about how long the restore takes, based on earlier restores on this machine or else on
// verifications; nil if neither suffices.
func (s *Service) estimate(p RestorePlan) (*time.Duration, error) {
	var about *time.Duration
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		for _, setting := range []string{restorePaceSetting, verificationPaceSetting} {
			if about = readPace(tx, setting).estimate(p); about != nil {
				break
			}
		}
		return nil
	})
	return about, err
}

// estimate returns about how long the restore takes, nil if that is unknown.
func (r restorePace) estimate(p RestorePlan) *time.Duration {
	unpack, known := r.Unpack.proportional(p.Backup.SizeBytes)
	rest, alsoKnown := r.Rest.linear(p.WALBytes())
	if !known || !alsoKnown {
		return nil
	}
	about := time.Duration((unpack + rest) * float64(time.Second)).Round(time.Millisecond)
	return &about
}
