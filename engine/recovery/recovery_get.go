package recovery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// RecoveryState says whether a database can be restored.
type RecoveryState string

// The states. Degraded means that current commits may be lost.
const (
	RecoveryAvailable RecoveryState = "available"
	RecoveryWaiting   RecoveryState = "waiting_for_first_backup"
	RecoveryDegraded  RecoveryState = "degraded"
)

// Recovery describes the times to which a database can be restored. Its times are those of commits that are safe in the
// archive.
type Recovery struct {
	State RecoveryState
	// Archives says whether the database's WAL is archived; a sandbox's WAL is not.
	Archives   bool
	Window     Window
	RPO        *time.Duration // nil while nothing receives WAL
	Archiving  Archiving
	Interval   time.Duration // of scheduled backups, 0 for none
	NextBackup *time.Time
	Retention  time.Duration // 0 keeps backups forever
	Timeline   []RecoveryEvent
	Operations []model.DatabaseOperation
}

// Window is the range of times to which the database can be restored.
type Window struct{ Earliest, Latest *time.Time }

// Archiving describes how the WAL is archived.
type Archiving struct {
	wal.Status
	LastSegment string
	Segments    int       // in the archive, of all generations
	Gaps        []wal.Gap // of all generations, oldest first
}

// RecoveryEvent is an event in the history of a database's data.
type RecoveryEvent struct {
	Type     string // "backup", "restore", "gap" or "timeline_switch"
	At       time.Time
	Backup   string
	Timeline int    // of the WAL, 0 if unknown
	LSN      string // where the WAL continues after a restore or a switch
}

// RecoveryGet returns the times to which the database can be restored, and its history.
func (s *Service) RecoveryGet(ctx context.Context, call *model.Call, database string) (Recovery, error) {
	db, err := s.databases.Database(call, database)
	if err != nil {
		return Recovery{}, err
	}
	r := Recovery{Archives: !db.Sandbox, Interval: s.databases.BackupInterval(db), Retention: s.databases.BackupRetention(db)}
	if db.Sandbox {
		r.Interval, r.Retention = 0, 0
	}
	if r.Window, err = s.window(ctx, db); err != nil {
		return r, err
	}
	if r.Archiving, err = s.archiving(db); err != nil {
		return r, err
	}
	r.RPO = s.recoveryPoint(r, s.databases.Rests(db.ID))
	unchanged, err := s.sleepsSinceBackup(db)
	if err != nil {
		return r, err
	}
	if r.Interval > 0 && !unchanged {
		next, err := s.nextBackup(db)
		if err != nil {
			return r, err
		}
		r.NextBackup = &next
	}
	if r.Timeline, r.Operations, err = s.recoveryHistory(db, r.Archiving.Gaps); err != nil {
		return r, err
	}
	r.State, err = s.recoveryState(db, r)
	return r, err
}

// recoveryPoint returns the period whose commits would be lost if the server failed now. Until the receiver first hears
// from its server, that is everything since the last moment in the archive.
func (s *Service) recoveryPoint(r Recovery, asleep bool) *time.Duration {
	if asleep {
		return new(time.Duration)
	}
	if r.Archiving.State == "" {
		return nil
	}
	rpo := r.Archiving.RPO(s.core.Clock())
	if r.Archiving.State != wal.StateStreaming && r.Archiving.RestorableTo.IsZero() {
		if r.Window.Latest == nil {
			return nil
		}
		rpo = max(0, s.core.Clock().Sub(*r.Window.Latest))
	}
	return &rpo
}

// recoveryState returns the state. A receiver that has just disconnected does not degrade it; a long disconnection
// does, and so does the lack of a backup that leads to the present data.
func (s *Service) recoveryState(db model.Database, r Recovery) (RecoveryState, error) {
	leads, err := s.leadsToPresent(db.ID)
	if err != nil {
		return "", err
	}
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return "", err
	}
	status, _ := s.databases.LiveStatus(db)
	away := !s.databases.Rests(db.ID) && r.Archiving.State != wal.StateStreaming &&
		(r.Archiving.State == "" || r.Archiving.RPO(s.core.Clock()) > time.Minute || r.Archiving.State == wal.StateFailed)
	switch {
	case r.Window.Earliest == nil:
		return RecoveryWaiting, nil
	case !slices.ContainsFunc(backups, leads):
		return RecoveryDegraded, nil
	case away && status == model.DatabaseAvailable, r.Archiving.SlotState == "lost", r.Archiving.CompressError != "":
		return RecoveryDegraded, nil
	default:
		return RecoveryAvailable, nil
	}
}

// window returns the range from the end of the oldest backup to the last moment whose commits are known to be safe.
// Just after the first backup it waits until the range is not empty.
func (s *Service) window(ctx context.Context, db model.Database) (w Window, err error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil || len(backups) == 0 {
		return w, err
	}
	w.Earliest = backups[len(backups)-1].CompletedAt
	s.AwaitArchive(ctx, db.ID, *w.Earliest)
	latest, err := s.restorableTo(ctx, db, backups)
	if err != nil {
		return w, err
	}
	w.Latest = &latest
	if w.Earliest.After(*w.Latest) { // the clock has been set back since
		w.Earliest = w.Latest
	}
	return w, nil
}

// restorableTo returns the last moment that is known to be safe. If no receiver has reported one, that is the last commit in the
// archive, else the end of the newest backup. If no backup leads past a gap in the WAL, it is just before the last commit
// before the gap, which shows that nothing before it is missing. The backups are newest first.
func (s *Service) restorableTo(ctx context.Context, db model.Database, backups []model.Backup) (time.Time, error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return time.Time{}, err
	}
	newest, cut := beforeGap(archive, db, backups)
	if !cut && s.databases.Rests(db.ID) { // nothing happens that is not in the archive
		return s.core.Clock(), nil
	}
	if status, _ := s.WALStatus(db.ID); !cut && !status.RestorableTo.IsZero() {
		return status.RestorableTo, nil
	}
	start, err := xlog.ParseLSN(newest.StartLSN)
	if err != nil {
		return time.Time{}, err
	}
	last := *newest.CompletedAt
	if now := s.core.Clock(); last.After(now) { // the clock has been set back since
		last = now
	}
	generation, timeline := newest.Generation, uint32(newest.Timeline)
	if cut {
		generation, timeline = db.Generation, 0
	}
	found, err := archive.Window(ctx, generation, timeline, start)
	if cut {
		found.LastCommit = found.LastCommit.Add(-time.Microsecond)
		if errors.Is(err, wal.ErrGap) { // it is damaged there
			err = nil
		}
	}
	if found.LastCommit.After(last) {
		last = found.LastCommit
	}
	return last, err
}

// beforeGap returns the newest backup that leads to the present data, and true, if there is a gap in the WAL after each of
// these; else the newest backup, and false.
func beforeGap(archive *wal.Archive, db model.Database, backups []model.Backup) (newest model.Backup, cut bool) {
	newest = backups[0]
	for _, b := range backups {
		switch {
		case reaches(archive, b, db.Generation):
			return backups[0], false
		case !cut && leadsTo(archive, b, db.Generation):
			newest, cut = b, true
		}
	}
	return newest, cut
}

// archiving returns how the database's WAL is archived.
func (s *Service) archiving(db model.Database) (Archiving, error) {
	archive, err := s.WALArchive(db.ID)
	if err != nil {
		return Archiving{}, err
	}
	var a Archiving
	a.Status, _ = s.WALStatus(db.ID)
	for number, known := range archive.Generations() {
		a.Gaps = append(a.Gaps, known.Gaps...)
		a.Segments += archive.Sizes(number).Segments
	}
	slices.SortFunc(a.Gaps, func(one, other wal.Gap) int { return one.At.Compare(other.At) })
	known, _ := archive.Generation(db.Generation)
	if known.SegmentSize > 0 && a.Durable > 0 {
		a.LastSegment = xlog.SegmentName(a.Timeline, uint64(a.Durable-1)/known.SegmentSize, known.SegmentSize)
	}
	return a, nil
}

// recoveryHistory returns the events in the database's data, newest first.
func (s *Service) recoveryHistory(db model.Database, gaps []wal.Gap) (events []RecoveryEvent, operations []model.DatabaseOperation, err error) {
	backups, err := s.restorableBackups(db.ID)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range backups {
		events = append(events, RecoveryEvent{Type: "backup", At: *b.CompletedAt, Backup: b.ID, Timeline: b.Timeline, LSN: b.StopLSN})
	}
	for _, g := range gaps {
		events = append(events, RecoveryEvent{Type: "gap", At: g.At, Timeline: int(g.Timeline), LSN: g.From.String()})
	}
	for _, it := range db.Served {
		events = append(events, RecoveryEvent{Type: "timeline_switch", At: it.Since, Timeline: it.Timeline, LSN: it.LSN})
	}
	all, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.DatabaseOperation, error) { return core.AllUnder(tx.Operations(), db.ID) })
	if err != nil {
		return nil, nil, err
	}
	for _, op := range all {
		if op.Type != model.OperationBackup && !op.Type.Replaces() && op.Type != model.OperationBranch {
			continue
		}
		op.Progress = s.databases.Progress.Get(op.ID, op.Progress)
		operations = append(operations, op)
		if replaced, by := replacedData(db, op); replaced {
			events = append(events, RecoveryEvent{Type: "restore", At: *op.CompletedAt, Backup: op.Backup, Timeline: by.Timeline, LSN: by.LSN})
		}
	}
	slices.SortStableFunc(events, func(a, b RecoveryEvent) int { return cmp.Compare(b.At.UnixNano(), a.At.UnixNano()) })
	return events[:min(len(events), databases.RecoveryEvents)], operations[:min(len(operations), databases.RecoveryEvents)], nil
}

// replacedData reports whether an operation has replaced the database's data, and
// returns its switch. A restore into another database replaces nothing.
func replacedData(db model.Database, op model.DatabaseOperation) (replaced bool, by model.Served) {
	if !op.Type.Replaces() ||
		op.NewDatabase != "" || op.Status != model.OperationCompleted || op.CompletedAt == nil {
		return false, by
	}
	for _, s := range db.Served {
		if s.Generation == op.Generation && !s.Since.Before(op.StartedAt.Truncate(time.Microsecond)) && !s.Since.After(*op.CompletedAt) {
			by = s
		}
	}
	return true, by
}
