package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/engine/offsite/stream"
)

// machineWAL returns the copy of a database in a run of its own, with WAL of two full segments and a large part of another.
// Machines have WAL of the same positions and different content.
func machineWAL(t *testing.T, w *stream.Writer, known *known, machine uint64) *databaseCopy {
	t.Helper()
	r := &databaseRun{databasePart: &databasePart{dir: t.TempDir()}, writer: w, known: known, owners: map[string]*databaseCopy{}}
	c := r.of("db_1")
	if err := os.MkdirAll(c.walDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.archive, err = wal.Open(c.walDir(), wal.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.archive.Close() })
	random := rand.New(rand.NewPCG(machine, 0))
	b := &xlogtest.Builder{Start: xlogtest.SegmentSize}
	for b.Len() < 2*xlogtest.SegmentSize+xlogtest.SegmentSize/2 {
		content := make([]byte, 8000)
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		b.Record(21, 0, xlogtest.MainData(content))
	}
	if err := c.archive.Create(1, nil); err != nil {
		t.Fatal(err)
	}
	writer, err := c.archive.Writer(1)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	err = writer.Identify(xlogtest.System, xlogtest.SegmentSize, 1)
	if err == nil {
		_, err = writer.Start(1, b.Start)
	}
	if err == nil {
		err = writer.Append(b.Start, b.Bytes())
	}
	if err == nil {
		_, _, err = writer.Sync()
	}
	if err == nil {
		_, err = writer.Start(1, b.Pos()) // which waits for the compression
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// references returns those of the segments in a checkpoint, by name, and the local files.
func (c *databaseCopy) references(t *testing.T) (refs map[string]stream.Reference, files map[string]wal.StoredFile) {
	t.Helper()
	stored, err := c.archive.Stored()
	if err != nil {
		t.Fatal(err)
	}
	entries, _, err := c.filesOfWAL(t.Context(), stored, false)
	if err = errors.Join(err, c.failed); err != nil {
		t.Fatal(err)
	}
	refs, files = map[string]stream.Reference{}, map[string]wal.StoredFile{}
	for _, e := range entries {
		if e.Ref.ID != 0 {
			refs[e.Name] = e.Ref
		}
	}
	for _, f := range stored {
		files[walName(f)] = f
	}
	if len(refs) != 3 {
		t.Fatalf("the checkpoint has the segments %v, want two full ones and a partial one", refs)
	}
	return refs, files
}

// TestSegmentsOfAnotherMachine: of the segments that the store has, a run refers to those that are the same here. One that is
// damaged here stays as the store has it.
func TestSegmentsOfAnotherMachine(t *testing.T) {
	t.Parallel()
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, directoryRepository(t)), stream.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	has, _ := machineWAL(t, w, newKnown(), 1).references(t)
	known := func() *known {
		k := newKnown()
		for name, ref := range has {
			k.Put("db_1", KindWAL, name, ref)
		}
		return k
	}
	if again, _ := machineWAL(t, w, known(), 1).references(t); !maps.Equal(again, has) {
		t.Errorf("what is the same is stored again: %v, had %v", again, has)
	}
	other := machineWAL(t, w, known(), 2)
	refs, files := other.references(t)
	for name, ref := range refs {
		content, err := os.ReadFile(files[name].Path(other.walDir()))
		switch {
		case err != nil:
			t.Error(err)
		case ref == has[name]:
			t.Errorf("%s is the other machine's", name)
		case !files[name].IsPartial() && ref.Hash != blake3.Sum256(content):
			t.Errorf("%s is not what is here", name)
		}
	}
	damaged := machineWAL(t, w, known(), 2)
	for name := range has {
		f, _ := parseWALName(name)
		if f.IsPartial() {
			continue
		}
		content, err := os.ReadFile(f.Path(damaged.walDir()))
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 1
		if err := os.WriteFile(f.Path(damaged.walDir()), bytes.Clone(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, _ := damaged.references(t)
	for name, ref := range kept {
		if f, _ := parseWALName(name); !f.IsPartial() && ref != has[name] {
			t.Errorf("the damaged %s replaces what the store has", name)
		}
	}
}

// TestSentByAnotherMachine: WAL that another machine has sent is not this one's, whatever its position.
func TestSentByAnotherMachine(t *testing.T) {
	t.Parallel()
	k := newKnown()
	k.Put("db_1", KindWAL, "1/000000010000000000000002.zst", stream.Reference{ID: 1})
	c := machineWAL(t, nil, k, 1)
	if end, some := c.sent(c.archive, nil, true).End(1, 1); !some || end != xlog.LSN(3*xlogtest.SegmentSize) {
		t.Errorf("of its own, the copy has %v, %v", end, some)
	}
	k.foreign = true
	if end, some := c.sent(c.archive, nil, true).End(1, 1); some {
		t.Errorf("of another machine's, the copy has %v", end)
	}
}

// TestLogInSpiteOfDamage: of segments that only the log has, one that begins in a damaged file and one with a gap cost no other.
func TestLogInSpiteOfDamage(t *testing.T) {
	t.Parallel()
	at, dir := preparedDirectory(t)
	r := at.open(t).repository
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	begun := stream.Entry{Owner: "db_1", Kind: KindWAL, Name: walName(wal.PartialOf(1, 1, 2, size, 100))}
	if _, err := w.Checkpoint(t.Context(), func(ctx context.Context) (_ []stream.Entry, err error) {
		begun.Ref, err = w.Store(ctx, bytes.NewReader(make([]byte, 20<<10)))
		return []stream.Entry{begun}, err
	}); err != nil {
		t.Fatal(err)
	}
	f := &frames{left: []stream.Frame{{Time: time.Now(), Body: generationOf(t, "db_1")}}}
	for _, from := range []uint64{2*size + 100, 3 * size, 4*size + 100, 5 * size} {
		f.left = append(f.left, stream.Frame{Time: time.Now(), Body: stream.WAL{Owner: "db_1", Generation: 1, Timeline: 1, From: from, Bytes: []byte("some WAL")}})
	}
	w.Add(f)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	h := claimEpoch(t, r)
	point, err := h.Find(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := readKnown(t.Context(), r, h, point)
	if err != nil {
		t.Fatal(err)
	}
	known.own = true
	if w, err = stream.NewWriter(t.Context(), h, stream.Options{Interval: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	if err := os.Remove(filepath.Join(dir, "e", begun.Ref.Epoch.String(), "file", fmt.Sprintf("%016x/%06x", begun.Ref.ID, 0))); err != nil {
		t.Fatal(err)
	}
	run := &databaseRun{databasePart: &databasePart{dir: t.TempDir()}, writer: w, known: known, owners: map[string]*databaseCopy{}}
	c := run.of("db_1")
	c.collect()
	if err := c.readLog(t.Context(), t.TempDir(), func(wal.StoredFile) bool { return true }); err != nil {
		t.Fatal(err)
	}
	want := []string{"1/incarnation", begun.Name, walName(wal.PartialOf(1, 1, 3, size, 8)), walName(wal.PartialOf(1, 1, 5, size, 8))}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(known.Names("db_1", KindWAL))); !slices.Equal(got, want) {
		t.Errorf("the copy has %v, want %v", got, want)
	}
}
