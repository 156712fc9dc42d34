package wal

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// nothingSent is for a copy that has nothing, of an archive that has nothing.
var nothingSent = Sent{End: func(int, uint32) (xlog.LSN, bool) { return 0, true }}

// tapLog is the pieces of a tap, with what was known when each was read.
type tapLog struct {
	t      testing.TB
	pieces []Piece
}

// drain reads everything that a tap has.
func (l *tapLog) drain(tap *Tap) {
	l.t.Helper()
	for {
		pieces, err := tap.Next(1+rand.IntN(300_000), time.Time{})
		if err != nil {
			l.t.Fatal(err)
		}
		if len(pieces) == 0 {
			if bytes, oldest := tap.Waiting(); bytes != 0 || !oldest.IsZero() {
				l.t.Errorf("%d bytes wait since %v, and Next returns nothing", bytes, oldest)
			}
			return
		}
		l.pieces = append(l.pieces, pieces...)
	}
}

// sent returns how far the pieces reach.
func (l *tapLog) sent(generation int, timeline uint32) (end xlog.LSN, known bool) {
	for _, p := range l.pieces {
		if p.Name == "" && p.Generation == generation && p.Timeline == timeline {
			end, known = p.From+xlog.LSN(len(p.Bytes)), true
		}
	}
	return end, known
}

// play writes the first n pieces to a copy.
func (l *tapLog) play(c *Copy, n int) {
	l.t.Helper()
	for _, p := range l.pieces[:n] {
		var err error
		if p.Name != "" {
			err = c.Put(p.Generation, p.Name, p.Content)
		} else {
			err = c.WAL(p.Generation, p.Timeline, p.From, p.Bytes)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
	if err := c.Sync(); err != nil {
		l.t.Fatal(err)
	}
}

// putStored begins a copy with the files of an archive.
func putStored(t testing.TB, a *Archive, c *Copy) {
	t.Helper()
	files, err := a.Stored()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(files, func(a, b StoredFile) int { return cmp.Compare(len(b.Content), len(a.Content)) })
	for _, f := range files {
		parsed, err := ParseStored(f.String())
		if err != nil || parsed.Generation != f.Generation || parsed.Name != f.Name {
			t.Fatalf("%v, %v", parsed, err)
		}
		if f.Content != nil {
			err = c.Put(f.Generation, f.Name, f.Content)
		} else if err = c.Later(f); err == nil {
			err = copyStored(f, a.dir, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func copyStored(f StoredFile, from string, c *Copy) error {
	content, err := os.ReadFile(f.Path(from))
	if err != nil {
		return err
	}
	if f.IsPartial() {
		return c.Begin(f, content[:f.Length])
	}
	return os.WriteFile(f.Path(c.dir), content, 0o600)
}

// lastRecord returns the end of the last record that is complete at a position.
func lastRecord(b *xlogtest.Builder, at xlog.LSN) xlog.LSN {
	scan := xlog.NewScanner(xlog.ScannerConfig{SegmentSize: smallSegment, Timeline: 1, System: 77}, b.Start)
	scan.Each(b.Bytes()[:at-b.Start], func(*xlog.Record) {})
	return max(scan.End(), b.Start)
}

// TestTapWhileWriting copies an archive that is written, compressed, closed and opened again: a copy of every part
// of the pieces has the WAL up to its end.
func TestTapWhileWriting(t *testing.T) {
	t.Parallel()
	b := longWAL(5, nil)
	l := &tapLog{t: t}
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tap := a.Tap(nothingSent, func() {})
	err = appendAll(w, b, func(xlog.LSN) {
		switch rand.IntN(20) {
		case 0, 1, 2:
			l.drain(tap)
		case 3:
			w.compressor.wait()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if rand.IntN(2) == 0 {
		l.drain(tap)
	}
	if err := errors.Join(w.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	if pieces, err := tap.Next(1<<20, time.Time{}); len(pieces) > 0 || err != nil {
		t.Errorf("a tap of a closed archive has %d pieces, %v", len(pieces), err)
	}
	if a, err = Open(a.dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	tap = a.Tap(Sent{End: l.sent}, func() {})
	defer tap.Close()
	l.drain(tap)
	for range 5 {
		n := rand.IntN(len(l.pieces) + 1)
		copied := NewCopy(filepath.Join(t.TempDir(), "copy"))
		l.play(copied, n)
		if end, some := (&tapLog{t: t, pieces: l.pieces[:n]}).sent(1, 1); some {
			expectWAL(t, copied.dir, b, lastRecord(b, end))
		}
	}
	copied := NewCopy(filepath.Join(t.TempDir(), "copy"))
	l.play(copied, len(l.pieces))
	l.play(copied, len(l.pieces)) // once more, as after a kill
	expectWAL(t, copied.dir, b, b.Pos())
}

// TestTapOfNoneInTheCopy: a copy that has none of a timeline takes what the tap of a growing archive begins with, whatever
// the archive has already.
func TestTapOfNoneInTheCopy(t *testing.T) {
	t.Parallel()
	for _, rest := range []bool{false, true} {
		b := longWAL(3, nil)
		a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		begin := b.Start + xlog.LSN(rand.Int64N(int64(b.Pos()-b.Start)))
		l := &tapLog{t: t}
		var tap *Tap
		err = appendAll(w, b, func(at xlog.LSN) {
			if tap == nil && at >= begin {
				none := func(int, uint32) (xlog.LSN, bool) { return 0, false }
				tap = a.Tap(Sent{End: none, Rest: rest}, func() {})
				begin = at
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer tap.Close()
		l.drain(tap)
		copied := NewCopy(filepath.Join(t.TempDir(), "copy"))
		l.play(copied, len(l.pieces))
		first := slices.IndexFunc(l.pieces, func(p Piece) bool { return p.Name == "" })
		if from := l.pieces[first].From; rest && from+smallSegment < begin || !rest && from != b.Start {
			t.Errorf("rest %v: the archive ended at %v, and the tap begins at %v", rest, begin, from)
		}
		c := openArchive(t, copied.dir)
		if err := c.Check(t.Context(), 1, 1, l.pieces[first].From, b.Pos(), nil); err != nil {
			t.Errorf("rest %v: %v", rest, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTapOfPruned: WAL that was pruned before it was read is left out, and what remains can be used.
func TestTapOfPruned(t *testing.T) {
	t.Parallel()
	b := longWAL(6, nil)
	a, w, err := openWriter(filepath.Join(t.TempDir(), "wal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	tap := a.Tap(nothingSent, func() {})
	defer tap.Close()
	if err := appendAll(w, b, func(xlog.LSN) {}); err != nil {
		t.Fatal(err)
	}
	w.compressor.wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l := &tapLog{t: t}
	pieces, err := tap.Next(smallSegment/2, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	l.pieces = pieces
	from := xlog.LSN(4*smallSegment + 60_000)
	if _, err := a.Prune([]Keep{{1, from}}); err != nil {
		t.Fatal(err)
	}
	l.drain(tap)
	copied := NewCopy(filepath.Join(t.TempDir(), "copy"))
	l.play(copied, len(l.pieces))
	c, err := Open(copied.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Check(t.Context(), 1, 1, from, b.Pos(), nil); err != nil {
		t.Error(err)
	}
	if err := c.Covers(1, 1, b.Start, b.Pos()); !errors.Is(err, ErrGap) {
		t.Errorf("a copy that lacks WAL: %v", err)
	}
}

// TestTapOfDamage: a damaged segment does not stop the tap.
func TestTapOfDamage(t *testing.T) {
	t.Parallel()
	b := longWAL(4, nil)
	a := store(t, b)
	path := filepath.Join(a.dir, "1", xlog.SegmentName(1, 2, smallSegment)+compressedSuffix)
	if err := os.Truncate(path, 3000); err != nil {
		t.Fatal(err)
	}
	tap := a.Tap(nothingSent, func() {})
	defer tap.Close()
	l := &tapLog{t: t}
	l.drain(tap)
	if end, _ := l.sent(1, 1); end < b.Pos()-8192 {
		t.Errorf("the tap ends at %v of %v", end, b.Pos())
	}
}

// TestTapLimits: the pieces are in order of time and not after a given one; what is new wakes once.
func TestTapLimits(t *testing.T) {
	t.Parallel()
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	woken := 0
	tap := a.Tap(nothingSent, func() { woken++ })
	defer tap.Close()
	l := &tapLog{t: t}
	l.drain(tap)
	before := time.Now()
	for n := 2; n < 5; n++ {
		if err := a.Create(n, nil); err != nil {
			t.Fatal(err)
		}
	}
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
	pieces, err := tap.Next(1<<20, before)
	if err != nil || len(pieces) != 1 || pieces[0].Generation != 2 || pieces[0].Name != generationFile {
		t.Errorf("%+v, %v", pieces, err)
	}
	pieces, err = tap.Next(1<<20, time.Now())
	if err != nil || len(pieces) != 2 || pieces[1].At.Before(pieces[0].At) {
		t.Errorf("%+v, %v", pieces, err)
	}
	tap.Close()
	if err := a.Create(9, nil); err != nil {
		t.Fatal(err)
	}
	if _, oldest := tap.Waiting(); !oldest.IsZero() {
		t.Error("a closed tap has something")
	}
}

// TestTapOfHours: what a tap remembers while nobody reads it is bounded, and the oldest time stays.
func TestTapOfHours(t *testing.T) {
	t.Parallel()
	tap := &Tap{wake: func() {}, streams: map[timelineKey]*tapStream{}}
	start := time.Now()
	for n := range 3 * maxTapChanges {
		key := timelineKey{1, 1}
		if n%1000 == 0 {
			key.timeline = 2
		}
		tap.add(tapChange{at: start.Add(time.Duration(n) * time.Second), timelineKey: key, end: xlog.LSN(n)})
	}
	if len(tap.changes) > maxTapChanges || !tap.changes[0].at.Equal(start) {
		t.Errorf("%d changes since %v", len(tap.changes), tap.changes[0].at)
	}
	if last := tap.changes[len(tap.changes)-1]; last.end != 3*maxTapChanges-1 {
		t.Errorf("the last one ends at %v", last.end)
	}
}

// TestCopyRefusesHoles: a piece in the middle of a segment needs what comes before it; one at its start does not.
func TestCopyRefusesHoles(t *testing.T) {
	t.Parallel()
	a := store(t, longWAL(1, nil))
	c := NewCopy(filepath.Join(t.TempDir(), "copy"))
	if err := c.WAL(1, 1, 0, []byte("x")); !errors.Is(err, ErrHole) {
		t.Errorf("of an unknown generation: %v", err)
	}
	content, err := os.ReadFile(filepath.Join(a.dir, "1", generationFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Put(1, generationFile, content); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[xlog.LSN]error{7 * smallSegment: nil, 9*smallSegment + 1: ErrHole} {
		if err := c.WAL(1, 1, at, []byte("x")); !errors.Is(err, want) {
			t.Errorf("at %v: %v", at, err)
		}
	}
	for _, name := range []string{"", "1", "1/", "1/x", "1/../incarnation", "-1/incarnation", "01/incarnation", "1/00000001.history.zst", "1/000000010000000000000005", "/etc/passwd"} {
		if f, err := ParseStored(name); err == nil {
			t.Errorf("%q is %v", name, f)
		}
	}
}

// TestTapOfServer copies the archive of a server under load, from its files and then its tap, and cuts the pieces at
// random: every commit that was acknowledged before the cut is there, and a server reaches it.
func TestTapOfServer(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	c := newCluster(t, bin, smallSegment, "max_wal_size=100MB")
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	c.do("create table answered (client int, n int)")
	r.waitFor(t, 1, c.flushed())
	backup := takeBackup(t, c)
	l := &tapLog{t: t}
	tap := a.Tap(Sent{End: func(int, uint32) (xlog.LSN, bool) { return 0, false }}, func() {})
	defer tap.Close()
	stored := filepath.Join(t.TempDir(), "stored")
	begin := NewCopy(stored)
	type cut struct {
		pieces int
		xids   []string
	}
	var cuts []cut
	var all []string
	for round := range 4 {
		all = append(all, commitUntil(t, c, func() {
			l.drain(tap)
			if round == 0 {
				putStored(t, a, begin) // in the middle of what the tap has
			}
			l.drain(tap)
		})...)
		if round == 1 {
			c.do("select pg_switch_wal()")
		}
		r.waitFor(t, 1, c.flushed())
		testenv.Eventually(t, "the tap has everything", func() bool {
			l.drain(tap)
			end, _ := l.sent(1, 1)
			return end >= c.flushed().RecordEnd(smallSegment)
		})
		cuts = append(cuts, cut{len(l.pieces), append([]string(nil), all...)})
	}
	for n, at := range cuts {
		copied := &Copy{dir: filepath.Join(t.TempDir(), "copy"), sizes: map[int]uint64{}, later: map[string]bool{}, have: map[string]xlog.LSN{}, made: map[int]bool{}}
		copyTree(t, stored, copied.dir)
		for path, have := range begin.have {
			copied.have[filepath.Join(copied.dir, "1", filepath.Base(path))] = have
		}
		for path := range begin.later {
			copied.later[filepath.Join(copied.dir, "1", filepath.Base(path))] = true
		}
		l.play(copied, at.pieces)
		expectCommits(t, copied.dir, backup.start, at.xids, fmt.Sprintf("at cut %d", n))
	}
	archive, err := Open(stored, Options{}) // the beginning alone
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	l.play(begin, len(l.pieces))
	archive, err = Open(stored, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	restored, _ := restoreTo(t, archive, bin, backup, Target{Generation: 1, LSN: c.flushed()})
	if got, want := restored.ask("select count(*)::text from answered"), c.ask("select count(*)::text from answered"); got != want {
		t.Errorf("a server that was restored from the copy has %s rows of %s", got, want)
	}
}

// copyOf returns a copy of an archive, from all pieces of a tap.
func copyOf(t testing.TB, tap *Tap) *Archive {
	t.Helper()
	l := &tapLog{t: t}
	l.drain(tap)
	c := NewCopy(filepath.Join(t.TempDir(), "copy"))
	l.play(c, len(l.pieces))
	a, err := Open(c.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
