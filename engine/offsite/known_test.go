package offsite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// directoryRepository returns an empty repository in a directory.
func directoryRepository(t testing.TB) *stream.Repository {
	t.Helper()
	store, err := objectstore.Open(t.Context(), "file://"+t.TempDir(), objectstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	keys, err := sealed.NewRing(sealed.NewKey(1))
	if err != nil {
		t.Fatal(err)
	}
	r, err := stream.NewRepository(store, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// claimEpoch claims the next epoch of a repository for a machine that knows all tokens.
func claimEpoch(t testing.TB, r *stream.Repository) *stream.History {
	t.Helper()
	h, err := r.Claim(t.Context(), time.Now(), stream.ClaimOptions{Machine: "test", Token: "token", TakeOver: true})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// frames is a source of frames that are there from the beginning.
type frames struct{ left []stream.Frame }

func (f *frames) Next(context.Context, int, time.Time) ([]stream.Frame, error) {
	next := f.left
	f.left = nil
	return next, nil
}
func (f *frames) Stored(uint64) {}
func (f *frames) Waiting() (w stream.Waiting) {
	if len(f.left) > 0 {
		w.Oldest = f.left[0].Time
	}
	return w
}

func TestKnown(t *testing.T) {
	r := directoryRepository(t)
	w, err := stream.NewWriter(t.Context(), claimEpoch(t, r), stream.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ref := func(id uint64) stream.Reference { return stream.Reference{Epoch: w.Epoch(), ID: id, Size: 0} }
	collect := func(context.Context) ([]stream.Entry, error) {
		return []stream.Entry{
			{Owner: "db_1", Kind: KindRepository, Name: "a", Ref: ref(1)},
			{Owner: "db_2", Kind: KindRepository, Name: "a", Ref: ref(2)},
			{Kind: KindSecret, Name: "secret.key", Data: []byte("k")},
			{Kind: KindBlob, Name: "old", Ref: ref(3)},
		}, nil
	}
	if _, err := w.Checkpoint(t.Context(), collect); err != nil {
		t.Fatal(err)
	}
	f := &frames{}
	for _, b := range []stream.Body{
		stream.File{Kind: KindBlob, Name: "new", Ref: ref(4)},
		stream.FileDrop{Kind: KindBlob, Name: "old"},
		stream.WAL{Owner: "db_1", Generation: 1, Timeline: 1, From: 100, Bytes: []byte("abc")},
		stream.WAL{Owner: "db_2", Generation: 1, Timeline: 1, From: 100, Bytes: []byte("abc")},
		stream.WALFile{Owner: "db_1", Generation: 3, Name: "incarnation", Content: []byte("x")},
		stream.WALFile{Owner: "db_2", Generation: 3, Name: "incarnation", Content: []byte("x")},
		stream.OwnerDrop{Owner: "db_2"},
		stream.Journal{Segment: 7, From: 10, Bytes: []byte("abcde")},
	} {
		f.left = append(f.left, stream.Frame{Time: time.Now(), Body: b})
	}
	w.Add(f)
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	h := claimEpoch(t, r)
	c, err := h.Find(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := readKnown(t.Context(), r, h, c)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(len(k.Owners()), len(k.Names("", KindBlob)), k.WALEnd("db_1", 1, 1), k.WALEnd("db_2", 1, 1), k.blobs[7].offset)
	if want := fmt.Sprintln(2, 1, 103, 0, 15); got != want {
		t.Errorf("owners, blobs, ends are %s, want %s", got, want)
	}
	if got, ok := k.Get("", KindBlob, "new"); !ok || got != ref(4) {
		t.Errorf("the new blob is %v, %v", got, ok)
	}
	if got := k.Entries("db_1", KindWAL); len(got) != 1 || got[0].Name != "3/incarnation" || string(got[0].Data) != "x" || k.lastGeneration("db_1") != 3 || k.lastGeneration("db_2") != 0 {
		t.Errorf("the small files of the log are %+v", got)
	}
	if got, _ := k.Get("", KindSecret, "secret.key"); got != referenceOf(stream.Entry{Data: []byte("k")}) {
		t.Errorf("the inline entry is %v", got)
	}
}

// TestWALOfTheLogAlone: a gap in the WAL of the log takes no space, and what the log gets while a checkpoint is made is nothing that the
// checkpoint may lack.
func TestWALOfTheLogAlone(t *testing.T) {
	t.Parallel()
	k := newKnown()
	c := &databaseCopy{databaseRun: &databaseRun{known: k}, id: "db_1"}
	add := func(from uint64, bytes string) {
		k.addWAL(stream.WAL{Owner: "db_1", Generation: 1, Timeline: 1, From: from, Bytes: []byte(bytes)})
	}
	want := func(what string, got map[walStream]walRange, want walRange) {
		t.Helper()
		if has := got[walStream{"db_1", 1, 1}]; has != want {
			t.Errorf("%s: %+v, not %+v", what, has, want)
		}
	}
	add(100, "abc")
	add(1<<40, "abc")
	c.collected = k.ofLog("db_1")
	want("beside a gap", c.collected, walRange{from: 100, to: 1<<40 + 3, bytes: 6})
	add(1<<40+3, "later")
	want("that ends", c.endingLog(), walRange{from: 100, to: 1<<40 + 3, bytes: 11})
	k.readWAL(c.endingLog())
	for range 2 { // once the checkpoint is stored
		k.trimWAL(c.collected)
	}
	want("after the checkpoint", k.ofLog("db_1"), walRange{from: 1<<40 + 3, to: 1<<40 + 8, read: 1<<40 + 3, bytes: 5})
	c.collected = nil
	want("of a stream that is new since", c.endingLog(), walRange{from: 1<<40 + 3, read: 1<<40 + 3, bytes: 5})
}
