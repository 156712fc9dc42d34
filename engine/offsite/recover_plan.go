package offsite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// recoveryFile, in the directory of this package below the data directory, is the plan
// of a recovery.
const recoveryFile = "recovery.json"

// recoveryFormat is the version of the plan.
const recoveryFormat = 1

// recoveryStep is how far a recovery has come. Each step can be repeated.
type recoveryStep string

const (
	// stepClaim: the epoch is being claimed. The data directory is empty.
	stepClaim recoveryStep = "claim"
	// stepFiles: secrets, metadata, the journal and the log's WAL are being written. The
	// data directory is incomplete, and the step begins again with an empty one.
	stepFiles recoveryStep = "files"
	// stepServe: the appliance works. Databases and large objects follow.
	stepServe recoveryStep = "serve"
	// stepDone: everything was brought back, of databases in the trash the files.
	stepDone recoveryStep = "done"
)

// recoveryPlan is the record of a recovery.
type recoveryPlan struct {
	Format     int          `json:"format"`
	Repository string       `json:"repository"`
	Step       recoveryStep `json:"step"`
	// Nonce is that of the claim, for a store that does not refuse a second creator.
	Nonce string     `json:"nonce,omitempty"`
	At    *time.Time `json:"at,omitempty"`    // the moment that was asked for
	First []string   `json:"first,omitempty"` // names of the databases that come first
	Only  []string   `json:"only,omitempty"`  // names of the databases that are brought back, none for all
	// LostDropped means that the objects were dropped whose bytes the copy did not have. What is lost later is damage.
	LostDropped bool           `json:"lost_dropped,omitempty"`
	Report      RecoveryReport `json:"report"`
}

// isLeft reports whether a database stays in the copy.
func (p recoveryPlan) isLeft(d RecoveredDatabase) bool {
	return len(p.Only) > 0 && d.isPending() && !slices.Contains(p.Only, d.Name)
}

// isOver reports whether nothing is left to do: not even databases in the trash, which are
// rebuilt when they are restored.
func (p recoveryPlan) isOver() bool {
	return p.Step == stepDone && !slices.ContainsFunc(p.Report.Databases, func(d RecoveredDatabase) bool { return !d.Done })
}

// RecoveryReport says what a recovery brought back.
type RecoveryReport struct {
	Machine   string     `json:"machine"` // whose copy it is
	StartedAt time.Time  `json:"started_at"`
	Point     time.Time  `json:"point"` // of the checkpoint
	Until     time.Time  `json:"until"` // of the last change in the log after it
	EndedAt   *time.Time `json:"ended_at"`
	// Warnings are what a person should know.
	Warnings  []string            `json:"warnings"`
	Databases []RecoveredDatabase `json:"databases"`
	// ObjectsDropped is how many large objects were new, so that the copy had no bytes of them yet.
	ObjectsDropped int `json:"objects_dropped"`
	// ObjectsDamaged is how many large objects are damaged or missing in the copy.
	ObjectsDamaged int `json:"objects_damaged"`
}

// of returns the report as members of an organization may see it.
func (r RecoveryReport) of(organization string) RecoveryReport {
	r.Databases = slices.DeleteFunc(slices.Clone(r.Databases), func(d RecoveredDatabase) bool { return d.Organization != organization })
	return r
}

// Missing returns the names of the databases that could not be brought back.
func (r RecoveryReport) Missing() (names []string) {
	for _, d := range r.Databases {
		if d.Error != "" && !d.Trash {
			names = append(names, d.Name)
		}
	}
	return names
}

// back returns how many databases are back.
func (r RecoveryReport) back() (n int) {
	for _, d := range r.Databases {
		if d.Done {
			n++
		}
	}
	return n
}

// String returns the report in sentences, for people.
func (r RecoveryReport) String() string {
	var b strings.Builder
	state := "complete"
	if len(r.Missing()) > 0 {
		state = "not complete"
	}
	fmt.Fprintf(&b, "The recovery from the copy of %s is %s, as of %s: %s, and all objects that the copy has.", r.Machine, state, r.Until.UTC().Format(time.DateTime+" UTC"), model.Count(int64(r.back()), "database"))
	for _, d := range r.Databases {
		switch {
		case d.Error != "":
			fmt.Fprintf(&b, " The database %s could not be brought back: %s. The next start tries again; a restore of another backup or a deletion ends that.", d.Name, d.Error)
		case d.Done && d.LastCommit != nil:
			fmt.Fprintf(&b, " The last commit of %s is of %s.", d.Name, d.LastCommit.UTC().Format(time.DateTime+" UTC"))
		case d.isPending():
			fmt.Fprintf(&b, " The database %s stays in the copy.", d.Name)
		}
	}
	if r.ObjectsDropped > 0 {
		fmt.Fprintf(&b, " Not copied in time, and dropped: %s.", model.Count(int64(r.ObjectsDropped), "object"))
	}
	if r.ObjectsDamaged > 0 {
		fmt.Fprintf(&b, " Damaged or missing in the copy: %s.", model.Count(int64(r.ObjectsDamaged), "object"))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, " Note: %s.", text)
	}
	return b.String()
}

// RecoveredDatabase is a database that a recovery brings back. Once its record is gone or has data, somebody or a rebuild has
// dealt with it.
type RecoveredDatabase struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Name         string `json:"name"`
	Trash        bool   `json:"trash"`
	// Bytes are those of the files that are fetched.
	Bytes   int64 `json:"bytes"`
	Fetched bool  `json:"fetched"`
	Done    bool  `json:"done"`
	// LastCommit is the time of the last commit that it has, nil if unknown.
	LastCommit *time.Time `json:"last_commit"`
	Error      string     `json:"error,omitempty"`
	// Left means that it stays in the copy, because of Only. Only reports have it.
	Left bool `json:"-"`
}

// isPending reports whether something of the database is in the copy alone, or has to be rebuilt. One in the trash is
// rebuilt when it is restored: until then, it needs its files only.
func (d RecoveredDatabase) isPending() bool { return !d.Done && (!d.Trash || !d.Fetched) }

// follow compares the database with its record, which is nil if it was deleted for good.
func (d *RecoveredDatabase) follow(record *model.Database) {
	switch {
	case record == nil:
		d.Fetched, d.Done, d.LastCommit, d.Error = true, true, nil, ""
	case !record.Rebuild:
		d.Fetched, d.Done, d.Error = true, true, ""
	default:
		d.Trash = record.Trash != nil
	}
}

// planStore keeps a plan in its file. It is safe for concurrent use.
type planStore struct {
	path string
	mu   sync.Mutex
	plan recoveryPlan
}

// openPlan returns the plan of a data directory, nil if nothing was ever recovered into it.
func openPlan(dataDir string) (*planStore, error) {
	s := &planStore{path: filepath.Join(dataDir, Directory, recoveryFile)}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan of the recovery: %w", err)
	}
	if err := json.Unmarshal(text, &s.plan); err != nil {
		return nil, fmt.Errorf("read the plan of the recovery in %s: %w", s.path, err)
	}
	if s.plan.Format > recoveryFormat {
		return nil, model.Errorf(model.CodeConflict, "%s has format %d, this holdfast knows formats up to %d: use a newer holdfast", s.path, s.plan.Format, recoveryFormat)
	}
	return s, nil
}

// newPlan writes the plan of a new recovery.
func newPlan(dataDir string, p recoveryPlan) (*planStore, error) {
	dir := filepath.Join(dataDir, Directory)
	if err := durable.EnsureDir(durable.OS{}, dir); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	s := &planStore{path: filepath.Join(dir, recoveryFile), plan: p}
	return s, s.change(func(*recoveryPlan) {})
}

// get returns a copy of the plan.
func (s *planStore) get() recoveryPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plan
	p.Report.Databases = append([]RecoveredDatabase{}, p.Report.Databases...)
	return p
}

// refuseOther refuses a store that is not the one that the recovery is from.
func (s *planStore) refuseOther(c *connection, url string) error {
	want, got := s.get().Repository, c.marker.Repository
	if got == want {
		return nil
	}
	return model.Errorf(model.CodeConflict, "the recovery of this appliance is from the copy %s, and %s has the copy %s: name the store of the recovery until it is complete", want, url, got)
}

// change changes the plan durably.
func (s *planStore) change(do func(p *recoveryPlan)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.plan)
	text, err := json.MarshalIndent(s.plan, "", "  ")
	if err == nil {
		err = durable.WriteFile(s.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the plan of the recovery: %w", err)
	}
	return nil
}

// database returns a database's part of the plan, false if it has none.
func (s *planStore) database(id string) (RecoveredDatabase, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.plan.Report.Databases {
		if d.ID == id {
			return d, true
		}
	}
	return RecoveredDatabase{}, false
}

// changeDatabase changes a database's part of the plan durably.
func (s *planStore) changeDatabase(id string, do func(d *RecoveredDatabase)) error {
	return s.change(func(p *recoveryPlan) {
		for i := range p.Report.Databases {
			if p.Report.Databases[i].ID == id {
				do(&p.Report.Databases[i])
			}
		}
	})
}

// RefuseUnfinished refuses a data directory into which a recovery has not brought
// enough yet.
func RefuseUnfinished(dataDir string) error {
	s, err := openPlan(dataDir)
	if err != nil || s == nil {
		return err
	}
	if step := s.get().Step; step == stepClaim || step == stepFiles {
		return model.Errorf(model.CodeConflict, "the data directory %s holds half of an appliance, whose recovery was cut off: begin `holdfast recover` again", dataDir)
	}
	return nil
}
