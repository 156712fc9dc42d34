package offsite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
	"holdfast/internal/objectstore"
)

// RecoverOptions are for Recover.
type RecoverOptions struct {
	Location
	DataDir string
	// At is the moment to recover, zero for the last one.
	At time.Time
	// First are the names of databases that come before the others.
	First []string
	// Only are the names of the databases to bring back, empty for all. The others stay in the copy until a recovery
	// that is repeated names them, or none.
	Only []string
	// TakeOver does not wait until the machine that wrote last is silent.
	TakeOver bool
	// Confirm is asked before anything is changed; nil agrees.
	Confirm func(Recoverable) error
	// Progress is told how far the recovery has come.
	Progress func(Progress)
}

// Recoverable is what Recover is about to bring back.
type Recoverable struct {
	Machine string
	Latest  time.Time // when that machine wrote last
	// Databases are those of the checkpoint, without deleted ones.
	Databases []model.Database
}

// Stage is what a recovery is doing.
type Stage string

// The stages of the first phase.
const (
	StageSilence Stage = "silence"
	StageEntries Stage = "entries"
	StageLog     Stage = "log"
	StageFinish  Stage = "finish"
)

// Progress is how far the first phase has come.
type Progress struct {
	Stage   Stage
	Machine string        // in StageSilence
	Left    time.Duration // in StageSilence
	Done    uint64        // entries, or frames of the log
	Total   uint64        // entries
	Until   time.Time     // in StageLog: of the newest frame
}

// Recover makes an empty data directory that of the appliance in a copy: secrets, metadata, the journal
// with small objects, and the WAL that the log has. Databases and large objects follow while
// the appliance serves. It can be repeated after every error and after a crash. Once it has
// returned without one, it returns the report at once when it is called again for the same copy.
// Until it returns it holds the lock of the data directory, without which no appliance starts.
func Recover(ctx context.Context, o RecoverOptions) (RecoveryReport, error) {
	report, err := recoverInto(ctx, o)
	if err != nil && core.IsDiskFull(err) && !isAboutStore(err) {
		err = &model.Error{Code: model.CodeConflict, Message: fmt.Sprintf("the disk of %s is full: make space, and begin the command again", o.DataDir), Err: err}
	}
	return report, err
}

func recoverInto(ctx context.Context, o RecoverOptions) (report RecoveryReport, err error) {
	lock, err := durable.LockDir(o.DataDir)
	if errors.Is(err, durable.ErrLocked) {
		return report, model.Errorf(model.CodeConflict, "%s is in use: another recovery into it, or an appliance, is running", o.DataDir)
	}
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	s, err := openPlan(o.DataDir)
	if err != nil {
		return report, err
	}
	if s != nil && s.get().Step == stepServe {
		err := s.change(func(p *recoveryPlan) { p.Only = o.Only })
		return s.get().Report, errors.Join(err, refuseOtherCopy(ctx, o.Location, s))
	}
	if err := refuseUsed(o.DataDir, s); err != nil {
		return report, err
	}
	r := &firstPhase{o: o, store: s}
	if err := r.connect(ctx); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.connection.close()) }()
	for _, step := range []func(context.Context) error{r.begin, r.claim, r.clear, r.fill, r.complete} {
		if err := step(ctx); err != nil {
			return report, err
		}
	}
	return r.store.get().Report, nil
}

// refuseOtherCopy refuses a location that is not that of the recovery. A store that is away is not
// refused: what follows waits for it, and looks again.
func refuseOtherCopy(ctx context.Context, at Location, s *planStore) error {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		if isAboutStore(err) {
			return nil
		}
		return err
	}
	return errors.Join(s.refuseOther(c, at.URL), c.close())
}

// refuseUsed refuses a data directory that is in use, or holds another recovery.
func refuseUsed(dir string, s *planStore) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if s != nil && s.get().Step != stepDone {
		return refuseForeign(dir, entries)
	}
	if s != nil {
		return model.Errorf(model.CodeConflict, "the recovery into %s is complete: `holdfast serve` starts the appliance", dir)
	}
	if len(entries) > 0 && !hasOnlyBegun(dir, entries) {
		return model.Errorf(model.CodeConflict, "the data directory %s is not empty: an appliance can only be recovered into an empty one", dir)
	}
	return nil
}

// hasOnlyBegun reports whether a directory has nothing but what a recovery leaves that ended before its plan was written.
func hasOnlyBegun(dir string, entries []os.DirEntry) bool {
	if len(entries) != 1 || entries[0].Name() != Directory {
		return false
	}
	left, err := os.ReadDir(filepath.Join(dir, Directory))
	return err == nil && (len(left) == 0 || len(left) == 1 && left[0].Name() == recoveryFile+durable.NewSuffix)
}

// isFilled reports whether the first phase makes a file or directory of that name in the data directory.
func isFilled(name string) bool {
	switch strings.TrimSuffix(name, durable.NewSuffix) {
	case Directory, core.MetadataFile, core.KeyFile, core.WebhookSecretFile, tlsDirectory, objects.Directory, "backups":
		return true
	}
	return strings.HasPrefix(name, metadataBuild)
}

// refuseForeign refuses to go on with a recovery in a directory that holds something else.
func refuseForeign(dir string, entries []os.DirEntry) error {
	for _, e := range entries {
		if !isFilled(e.Name()) {
			return model.Errorf(model.CodeConflict, "the data directory %s holds %s, which is not of the recovery that was cut off there: move it away, or recover into an empty directory", dir, e.Name())
		}
	}
	return nil
}

// firstPhase is a run of Recover.
type firstPhase struct {
	o            RecoverOptions
	connection   *connection
	capabilities objectstore.Capabilities
	store        *planStore
	history      *stream.History // of the claim
	checkpoint   *stream.Checkpoint
	restorers    *restorers
	partly       bool // the copy has more than was restored
	report       RecoveryReport
}

// connect opens the store in the way that it needs.
func (r *firstPhase) connect(ctx context.Context) (err error) {
	r.connection, r.capabilities, err = connectProbed(ctx, r.o.Location, objectstore.Options{})
	return err
}

// begin writes the plan, after everything that a person can still refuse.
func (r *firstPhase) begin(ctx context.Context) error {
	c := r.connection
	if r.store != nil {
		if p := r.store.get(); p.Repository != c.marker.Repository {
			return model.Errorf(model.CodeConflict, "the data directory %s holds half of another appliance, from another copy: name an empty one", r.o.DataDir)
		} else if r.o.At.IsZero() != (p.At == nil) || p.At != nil && !p.At.Equal(r.o.At) {
			return model.Errorf(model.CodeConflict, "the recovery into %s that was cut off is of another moment: repeat it with the same --at, or name an empty directory", r.o.DataDir)
		}
		return r.store.change(func(p *recoveryPlan) { p.First, p.Only = r.o.First, r.o.Only })
	}
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	if r.checkpoint, err = r.find(ctx, h); err != nil {
		return err
	}
	if err := c.refuseWithoutKey(ctx, r.checkpoint); err != nil {
		return err
	}
	activity, err := h.Activity(ctx)
	if err != nil {
		return err
	}
	all, err := r.preview(ctx, h, r.checkpoint)
	if err != nil {
		return err
	}
	if r.o.Confirm != nil {
		if err := r.o.Confirm(Recoverable{h.Tip().Machine, activity.Time, all}); err != nil {
			return err
		}
	}
	if !r.o.TakeOver {
		if err := c.awaitSilence(ctx, h, r.o.Progress); err != nil {
			return err
		}
	}
	if err := refuseUsed(r.o.DataDir, nil); err != nil { // the question and the silence may have taken hours
		return err
	}
	p := recoveryPlan{
		Format: recoveryFormat, Repository: c.marker.Repository, Step: stepClaim, First: r.o.First, Only: r.o.Only,
		Report: RecoveryReport{Machine: h.Tip().Machine, StartedAt: time.Now()},
	}
	if !r.o.At.IsZero() {
		p.At = &r.o.At
	}
	if !r.capabilities.Conditional {
		p.Nonce = newNonce()
	}
	r.store, err = newPlan(r.o.DataDir, p)
	return err
}

// newNonce returns a nonce for a claim.
func newNonce() string { return strings.ToLower(rand.Text())[:16] }

// mayLack reports whether a recovery goes on without the file of an entry: then a large object or a database is damaged,
// and everything else comes back.
func mayLack(e stream.Entry) bool {
	return e.Kind == KindBlob || e.Kind == KindRepository || e.Kind == KindWAL
}

// find returns the checkpoint to begin with.
func (r *firstPhase) find(ctx context.Context, h *stream.History) (*stream.Checkpoint, error) {
	c, err := h.FindLacking(ctx, r.o.At, mayLack)
	if errors.Is(err, stream.ErrNoPoint) && !r.o.At.IsZero() {
		return nil, model.Errorf(model.CodeValidation, "there is no usable point at or before %s in %s: `holdfast recover %s --list` shows what there is", r.o.At.Format(time.RFC3339), r.o.URL, r.o.URL)
	}
	if errors.Is(err, stream.ErrNoPoint) {
		return nil, &model.Error{Code: model.CodeConflict, Message: fmt.Sprintf("nothing in %s can be recovered: %v; `holdfast offsite verify` names all damage", r.o.URL, err), Err: err}
	}
	return c, err
}

// claim claims the next epoch: from then on, nothing that the other machine writes counts. A
// recovery that was cut off keeps its own claim.
func (r *firstPhase) claim(ctx context.Context) error {
	state, err := ReadState(r.o.DataDir)
	if err != nil {
		return err
	}
	mine := r.store.get().Step == stepFiles
	if !mine {
		state = state.withToken()
		state.Repository = r.connection.marker.Repository
		if err := state.Write(r.o.DataDir); err != nil {
			return err
		}
	}
	from, err := r.recovers(ctx)
	if err != nil {
		return err
	}
	// A claim that was made is a claim of this machine; only another one's is taken over, once.
	r.history, err = r.connection.repository.Claim(ctx, time.Now(), stream.ClaimOptions{
		Machine: machineName(), Token: state.token(), Known: state.Tokens, TakeOver: !mine, Nonce: r.store.get().Nonce, Recovers: from,
	})
	if errors.Is(err, stream.ErrTaken) {
		return model.Errorf(model.CodeConflict, "another machine has taken over the copy in %s since this recovery began: clear %s, and recover again with --take-over if that is meant", r.o.URL, r.o.DataDir)
	}
	if err != nil {
		return fmt.Errorf("claim the copy for this machine: %w", err)
	}
	state.Claimed = state.token()
	if err := state.Write(r.o.DataDir); err != nil {
		return err
	}
	if r.checkpoint, err = r.find(ctx, r.history); err != nil {
		return err
	}
	r.report = r.store.get().Report
	r.report.Point, r.report.Until, r.report.Warnings = r.checkpoint.Time, r.checkpoint.Time, []string{}
	for _, p := range r.history.Ignored {
		r.report.Warnings = append(r.report.Warnings, r.passedOver(p))
	}
	return r.store.change(func(p *recoveryPlan) { p.Step = stepFiles })
}

// recovers returns the time of the checkpoint to begin with, before the claim. One that was cut off has not found it yet.
func (r *firstPhase) recovers(ctx context.Context) (time.Time, error) {
	if r.checkpoint != nil {
		return r.checkpoint.Time, nil
	}
	h, err := r.connection.history(ctx)
	if err != nil {
		return time.Time{}, err
	}
	c, err := r.find(ctx, h)
	if err != nil {
		return time.Time{}, err
	}
	return c.Time, nil
}

// passedOver says what is wrong with an object of the copy. The checkpoint that is used can be among them, see FindLacking.
func (r *firstPhase) passedOver(p stream.Problem) string {
	if p.IsOf(r.checkpoint.Point) {
		return fmt.Sprintf("%s lacks something, and is used because no other point is whole: %v", p.Key, p.Err)
	}
	if p.IsLog() {
		return fmt.Sprintf("the log is damaged at %s, and what follows is lost: %v", p.Key, p.Err)
	}
	return fmt.Sprintf("%s is damaged and was passed over: %v", p.Key, p.Err)
}

// clear removes what an interrupted run has left: the directory was empty before it.
func (r *firstPhase) clear(context.Context) error {
	entries, err := os.ReadDir(r.o.DataDir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == Directory || !isFilled(e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.o.DataDir, e.Name())); err != nil {
			return fmt.Errorf("clear what an interrupted recovery left: %w", err)
		}
	}
	return nil
}

// fill restores the checkpoint and the log after it.
func (r *firstPhase) fill(ctx context.Context) error {
	all, err := newRestorers(r.connection.repository, r.connection.marker.Repository, r.o.DataDir)
	if err != nil {
		return err
	}
	r.restorers = all
	var done uint64
	for e, err := range r.connection.repository.Catalog(ctx, r.checkpoint) {
		if err == nil {
			err = all.entry(ctx, e)
		}
		if err != nil {
			return fmt.Errorf("restore the checkpoint: %w", err)
		}
		done++
		r.o.Progress(Progress{Stage: StageEntries, Done: done, Total: r.checkpoint.Entries})
	}
	if err := r.replay(ctx); err != nil {
		return err
	}
	r.o.Progress(Progress{Stage: StageFinish})
	return all.finish(ctx)
}

// replay applies the log. It ends before damage and before a gap: what follows is lost. A gap in the WAL of one database
// ends only that. Up to where the checkpoint follows the log, a gap is of something that was removed before the
// checkpoint could collect it.
func (r *firstPhase) replay(ctx context.Context) error {
	var done uint64
	r.partly = !r.o.At.IsZero()
	for f, err := range r.history.Frames(ctx, r.checkpoint, r.o.At) {
		if err == nil {
			err = r.restorers.frame(ctx, f)
		}
		hole, isHole := errors.AsType[*holeError](err)
		switch {
		case errors.Is(err, errGap) && f.Log <= r.checkpoint.Through:
		case isHole:
			r.restorers.databases.lack(hole.database)
		case errors.Is(err, errGap):
			r.partly = true
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("the machine was stopped before it had copied what came before %s; later changes are lost: %v", f.Time.Format(time.RFC3339), err))
			return nil
		case stream.Damaged(err):
			if absent := r.connection.repository.CheckMarker(ctx); absent != nil {
				return fmt.Errorf("replay the log: %w: %v", absent, err)
			}
			r.partly = true
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("the log is damaged after %s, and later changes are lost: %v", r.report.Until.Format(time.RFC3339), err))
			return nil
		case err != nil:
			return fmt.Errorf("replay the log: %w", err)
		}
		if done++; f.Time.After(r.report.Until) {
			r.report.Until = f.Time
		}
		r.o.Progress(Progress{Stage: StageLog, Done: done, Until: r.report.Until})
	}
	return nil
}

// complete marks the databases that are rebuilt, and lists them in the plan. From then on the appliance
// can be served.
func (r *firstPhase) complete(ctx context.Context) error {
	for _, name := range []string{core.MetadataFile, core.KeyFile} {
		if core.Absent(r.o.DataDir, name) {
			return model.Errorf(model.CodeConflict, "the copy has no %s: `holdfast offsite verify` names what is damaged", name)
		}
	}
	db, err := meta.Open(filepath.Join(r.o.DataDir, core.MetadataFile))
	if err != nil {
		return err
	}
	var all []model.Database
	if err = r.reserveGenerations(ctx, db); err == nil {
		all, err = databases.MarkForRebuild(db, r.o.DataDir)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("mark what is rebuilt: %w", err)
	}
	if err := r.refuseUnknown(all); err != nil {
		return err
	}
	for _, d := range all {
		if !d.Rebuild {
			continue
		}
		if r.restorers.databases.isStale(d.ID) {
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("backups or WAL of the database %s could not be read when the newest checkpoint was made: its last changes may be missing, and a recovery of a moment before that, with --at, may have them", d.Name))
		}
		if last, lacks := r.restorers.databases.lacking(d.ID); lacks {
			r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("the copy lacks WAL of the database %s: its changes after %s are missing", d.Name, later(last, r.checkpoint.Time).Format(time.RFC3339)))
		}
		r.report.Databases = append(r.report.Databases, RecoveredDatabase{ID: d.ID, Organization: d.Organization, Name: d.Name, Trash: d.Trash != nil, Bytes: r.restorers.databaseSize(d.ID)})
	}
	return r.store.change(func(p *recoveryPlan) { p.Step, p.Report = stepServe, r.report })
}
