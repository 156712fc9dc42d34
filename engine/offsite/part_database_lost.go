package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/offsite/stream"
	"holdfast/engine/recovery"
)

// What is not here although the records need it was lost: the copy may have the only good bytes, so it keeps them until the records say
// otherwise. What only another machine had is not lost.

// errLost means that a file is not here although the records say that it must be.
var errLost = errors.New("missing, although it is needed")

// errLogUnread means that the log may have WAL that nothing else has, and could not be read.
var errLogUnread = errors.New("read WAL that only the log of the copy has")

// isLost reports whether the copy has backups of a database whose directory is gone although the database is not removed.
func (c *databaseCopy) isLost() (bool, error) {
	if !c.ownFiles || len(c.known.Names(c.id, KindRepository))+len(c.known.Names(c.id, KindWAL)) == 0 {
		return false, nil
	}
	purged, err := c.recovery.IsPurged(c.id)
	if err != nil {
		return false, fmt.Errorf("find out whether a database is removed: %w", err)
	}
	return !purged, nil
}

// keepLost adds what the store has of files that are not here although backups need them, and notes them. These are the manifests of
// backups that are complete according to their records, and all packs and indexes while such a manifest, or an index that a backup
// needs, is missing: nothing is collected then.
func (c *databaseCopy) keepLost(ctx context.Context, r *repository.Repository, found map[string]stream.Reference) error {
	lacking := c.known.Names(c.id, KindRepository)
	maps.DeleteFunc(lacking, func(name string, _ stream.Reference) bool {
		_, here := found[name]
		return here
	})
	if !c.ownFiles || len(lacking) == 0 {
		return nil
	}
	lost, err := c.lostManifests(lacking)
	if err != nil {
		return err
	}
	cause := errLost
	if numbered := numberedOf(lacking); len(numbered) > 0 {
		if len(lost) == 0 {
			cause = r.CheckNeeded(ctx)
		}
		if errors.Is(cause, repository.ErrBusy) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), cause)
		}
		if cause != nil {
			lost = append(lost, numbered...)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	for _, name := range lost {
		found[name] = lacking[name]
	}
	c.skip(fmt.Sprintf("%d files of the backups, such as %s", len(lost), lost[0]), cause)
	return nil
}

// lostManifests returns the names of the manifests among some files that must be here. The caller has listed what is here before:
// a record says that its backup is being removed before its manifest is.
func (c *databaseCopy) lostManifests(lacking map[string]stream.Reference) (names []string, err error) {
	kept, err := c.recovery.KeptBackups(c.id)
	for _, b := range kept {
		if _, lacks := lacking[repository.ManifestName(b.ID)]; lacks {
			names = append(names, repository.ManifestName(b.ID))
		}
	}
	slices.Sort(names)
	return names, err
}

// numberedOf returns the names of the packs and indexes among some files.
func numberedOf(files map[string]stream.Reference) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool {
		_, numbered := repository.NumberOf(name)
		return !numbered
	})
}

// lostWAL returns what the store has of files that the archive has lost although the backups need them, and notes them. Of a segment
// it returns the whole one, else its longest beginning, unless anything of it is here. Some of what is here was skipped, because it cannot
// be read: what only the log has of that becomes known.
func (c *databaseCopy) lostWAL(ctx context.Context, here, skipped []wal.StoredFile) (lost []stream.Entry, err error) {
	if !c.ownWAL {
		return nil, nil
	}
	segments := map[string]bool{} // and other files
	for _, f := range here {
		segments[stemOf(f)] = true
	}
	needs, err := c.recovery.NeedsWAL(c.id, c.archive) // after the files were listed: what is pruned is not needed before
	if err == nil {
		err = c.knowLog(ctx, func(f wal.StoredFile) bool {
			return !segments[stemOf(f)] && needs(f) || slices.ContainsFunc(skipped, f.IsOf)
		})
	}
	if err != nil {
		return nil, err
	}
	var lacking []wal.StoredFile
	entries := map[string]stream.Entry{}
	for _, e := range c.known.Entries(c.id, KindWAL) {
		if f, err := parseWALName(e.Name); err == nil && !segments[stemOf(f)] {
			lacking, entries[e.Name] = append(lacking, f), e
		}
	}
	if len(lacking) == 0 {
		return nil, nil
	}
	slices.SortFunc(lacking, func(a, b wal.StoredFile) int {
		return cmp.Or(strings.Compare(stemOf(a), stemOf(b)), cmp.Compare(reach(b), reach(a)))
	})
	for _, f := range lacking {
		if !segments[stemOf(f)] && needs(f) {
			segments[stemOf(f)] = true
			lost = append(lost, entries[walName(f)])
		}
	}
	if len(lost) > 0 {
		c.skip(fmt.Sprintf("%d files of the WAL, such as %s", len(lost), lost[0].Name), errLost)
	}
	return lost, nil
}

// knowLog makes what the log alone has of segments that are lacking things that the store has: the next checkpoint, which does not
// have them, ends the log before it. The log is read again only if some may be lacking, and has something that was not looked for, and
// if the disk has space for all of it. Nothing is lacking of a database that is being removed for good.
func (c *databaseCopy) knowLog(ctx context.Context, lacking func(wal.StoredFile) bool) error {
	isOwn := c.known.own || c.point != (stream.Point{})
	if !isOwn || c.known.log == nil || !c.logHas(lacking) {
		return nil
	}
	if purged, err := c.recovery.IsPurged(c.id); purged && err == nil {
		return nil
	}
	name := "log-" + c.id
	dir := filepath.Join(c.databasePart.dir, recovery.VerificationDirectory, name)
	err := os.RemoveAll(dir)
	if err == nil {
		err = c.reserveForLog(name)
	}
	if err == nil {
		defer c.space.Release(name)
		err = c.readLog(ctx, dir, lacking)
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("%w: %w", errLogUnread, err)
	}
	return nil
}

// reserveForLog reserves the disk space that readLog takes at most.
func (c *databaseCopy) reserveForLog(name string) error {
	var need int64
	for _, has := range c.known.ofLog(c.id) {
		need += int64(has.bytes)
	}
	for _, e := range c.known.Entries(c.id, KindWAL) {
		if f, err := parseWALName(e.Name); err == nil {
			need += f.Length
		}
	}
	return c.space.Reserve(name, need, core.SpaceMargin, func(free int64) error {
		return core.NoSpace(nil, "the disk has %d MB free that no other operation needs, and this needs %d MB: the operator must free disk space",
			free>>20, (need+core.SpaceMargin)>>20)
	})
}

// endingLog returns the WAL that only the log has which the checkpoint under way ends: what the log got later follows that.
func (c *databaseCopy) endingLog() map[walStream]walRange {
	ranges := c.known.ofLog(c.id)
	for s, has := range ranges {
		has.to = min(has.to, c.collected[s].to)
		ranges[s] = has
	}
	return ranges
}

// logHas reports whether the log that the checkpoint under way ends may have something of segments that are lacking.
func (c *databaseCopy) logHas(lacking func(wal.StoredFile) bool) bool {
	for s, has := range c.endingLog() {
		from := max(has.from, has.read)
		if from >= has.to {
			continue
		}
		if c.archive == nil {
			return true
		}
		g, err := c.archive.Generation(int(s.generation))
		if err != nil && !lacking(wal.PartialOf(int(s.generation), s.timeline, 0, xlog.DefaultSegmentSize, 0)) {
			continue // it was pruned: without it, none of its positions are known, so that all are needed or none
		}
		if err != nil || g.SegmentSize == 0 {
			return true
		}
		for n := from / g.SegmentSize; n*g.SegmentSize < has.to; n++ {
			if lacking(wal.PartialOf(int(s.generation), s.timeline, n, g.SegmentSize, int64(min(g.SegmentSize, has.to-n*g.SegmentSize)))) {
				return true
			}
		}
	}
	return false
}

// readLog brings back the WAL of the newest checkpoint and of the log after it below a directory, as a recovery does, and stores the
// segments that are lacking, as far as the store has them undamaged.
func (c *databaseCopy) readLog(ctx context.Context, dir string, lacking func(wal.StoredFile) bool) error {
	log, ending := c.known.log, c.endingLog()
	end, err := c.writer.Flush(ctx) // of what the log has, some may be on its way
	if err != nil {
		return err
	}
	since := log.since
	if c.point != (stream.Point{}) {
		since, err = log.repository.Checkpoint(ctx, c.point)
	}
	d := newDatabaseRestorer(log.repository, dir)
	if err == nil {
		err = c.replay(ctx, d, since, end.Log, ending)
	}
	if stream.Damaged(err) { // a recovery ends there too
		err = log.repository.CheckMarker(ctx)
	}
	if err != nil {
		return err
	}
	if err := d.finish(ctx); err != nil {
		return err
	}
	if err := c.storeRead(ctx, d, dir, lacking); err != nil {
		return err
	}
	c.known.readWAL(ending)
	return nil
}

// replay applies the WAL of the newest checkpoint and of the log after it, up to a log object and of some ranges. A gap ends only its
// segment.
func (c *databaseCopy) replay(ctx context.Context, d *databaseRestorer, since *stream.Checkpoint, end uint64, ranges map[walStream]walRange) error {
	for _, e := range c.known.Entries(c.id, KindWAL) {
		if err := d.entry(ctx, e); err != nil {
			return err
		}
	}
	log := c.known.log
	log.reading.Lock()
	defer log.reading.Unlock()
	for f, err := range log.history.Frames(ctx, since, time.Time{}) {
		if err == nil && f.Log > end {
			break
		}
		if w, ok := f.Body.(stream.WAL); err == nil && ok && w.From >= ranges[walStream{w.Owner, w.Generation, w.Timeline}].to {
			continue
		}
		if err == nil && isWALOf(f, c.id) {
			err = d.frame(ctx, f)
		}
		if err != nil && !errors.Is(err, errGap) {
			return err
		}
	}
	return nil
}

// storeRead stores the segments that are lacking and were brought back below a directory.
func (c *databaseCopy) storeRead(ctx context.Context, d *databaseRestorer, dir string, lacking func(wal.StoredFile) bool) error {
	o := d.owners[c.id]
	if o == nil {
		return nil
	}
	for _, f := range o.copy.Partials() {
		e := stream.Entry{Owner: c.id, Kind: KindWAL, Name: walName(f)}
		if _, known := c.known.Get(c.id, KindWAL, e.Name); known || !lacking(f) || slices.ContainsFunc(o.damaged, f.IsOf) {
			continue
		}
		e, err := c.pack(ctx, e, f.Path(walOf(dir, c.id)), f.Length)
		if err != nil {
			return err
		}
		c.known.PutEntry(e)
	}
	return nil
}

// isWALOf reports whether a frame has WAL of a database, or a small file of its archive.
func isWALOf(f stream.Frame, database string) bool {
	switch b := f.Body.(type) {
	case stream.WAL:
		return b.Owner == database
	case stream.WALFile:
		return b.Owner == database
	}
	return false
}

// regain brings back the generations of the WAL archive that were lost and are in the copy. The present one may have been made anew:
// without its parent, the copy's file would be replaced, and backups of earlier data would not lead to the present one.
func (c *databaseCopy) regain(archive *wal.Archive) error {
	if !c.ownWAL {
		return nil
	}
	var stored []wal.StoredFile
	for _, e := range c.known.Entries(c.id, KindWAL) {
		if f, err := parseWALName(e.Name); err == nil && len(e.Data) > 0 {
			f.Content = e.Data
			stored = append(stored, f)
		}
	}
	return archive.Regain(stored)
}

// stemOf returns what the name of a file of the WAL archive has in common with that of another part of its segment.
func stemOf(f wal.StoredFile) string {
	stem, _, _ := strings.Cut(f.String(), ".")
	return stem
}

// reach returns how much of its segment a file has.
func reach(f wal.StoredFile) int64 {
	if f.IsPartial() {
		return f.Length
	}
	return math.MaxInt64
}
