package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// stored is a repository in a directory whose files a test changes.
type stored struct {
	*Repository
	dir string
}

func newStored(t *testing.T) *stored {
	t.Helper()
	s := directory(t)
	return &stored{repository(t, s, ring(t)), strings.TrimPrefix(s.String(), "file://")}
}

func (s *stored) path(key string) string { return filepath.Join(s.dir, filepath.FromSlash(key)) }

func (s *stored) change(t *testing.T, key string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(s.path(key))
	if err == nil {
		err = os.WriteFile(s.path(key), change(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stored) remove(t *testing.T, key string) {
	t.Helper()
	if err := os.Remove(s.path(key)); err != nil {
		t.Fatal(err)
	}
}

// twoPoints stores frames, a checkpoint, frames, a checkpoint, frames. Each checkpoint
// has a file of its own and one of both.
func twoPoints(t *testing.T, s *stored) (points [2]Point, refs [3]Reference) {
	t.Helper()
	src := &script{owner: "a"}
	w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
	defer kill(w)
	for i := range refs {
		ref, err := w.Store(t.Context(), bytes.NewReader(fmt.Append(nil, "file ", i)))
		if err != nil {
			t.Fatal(err)
		}
		refs[i] = ref
	}
	for i := range points {
		src.add(w, 100)
		flush(t, w)
		points[i] = checkpoint(t, w, []Entry{{Kind: "own", Ref: refs[i]}, {Kind: "both", Ref: refs[2]}})
	}
	src.add(w, 100)
	flush(t, w)
	return points, refs
}

func flipped(b []byte) []byte {
	b[len(b)-20] ^= 1
	return b
}

// TestPoisonedPoint damages what the newest checkpoint needs, in many ways: it is named
// and the one before is used.
func TestPoisonedPoint(t *testing.T) {
	for what, poison := range map[string]func(*testing.T, *stored, [2]Point, [3]Reference){
		"point changed": func(t *testing.T, s *stored, p [2]Point, _ [3]Reference) { s.change(t, p[1].key(), flipped) },
		"point cut":     func(t *testing.T, s *stored, p [2]Point, _ [3]Reference) { s.change(t, p[1].key(), half) },
		"point replaced": func(t *testing.T, s *stored, p [2]Point, _ [3]Reference) {
			old, _ := os.ReadFile(s.path(p[0].key()))
			s.change(t, p[1].key(), func([]byte) []byte { return old })
		},
		"file missing": func(t *testing.T, s *stored, _ [2]Point, r [3]Reference) { s.remove(t, r[1].partKey(0)) },
		"file cut":     func(t *testing.T, s *stored, _ [2]Point, r [3]Reference) { s.change(t, r[1].partKey(0), half) },
		"block changed": func(t *testing.T, s *stored, p [2]Point, _ [3]Reference) {
			c, err := s.Checkpoint(t.Context(), p[1])
			if err != nil {
				t.Fatal(err)
			}
			s.change(t, c.blocks[0].partKey(0), flipped)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStored(t)
				points, refs := twoPoints(t, s)
				poison(t, s, points, refs)
				h, c := find(t, s.Repository, time.Time{})
				if c.Point != points[0] {
					t.Fatalf("%v is used", c.Point)
				}
				if len(h.Ignored) != 1 || h.Ignored[0].Key != points[1].key() || !Damaged(h.Ignored[0].Err) {
					t.Errorf("named is %v", h.Ignored)
				}
				n := 0
				for _, err := range h.Frames(t.Context(), c, time.Time{}) {
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				if n < 2 || n > 3 {
					t.Errorf("%d frames follow the older checkpoint", n)
				}
			})
		})
	}
}

// TestLackingPointBehindAHole: a checkpoint that lacks a file that it may lack is used if the log does not lead to it from
// one that is whole.
func TestLackingPointBehindAHole(t *testing.T) {
	own := func(e Entry) bool { return e.Kind == "own" }
	for what, hole := range map[string]bool{"the log is whole": false, "the log has a hole": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStored(t)
				points, refs := twoPoints(t, s)
				want := points[0]
				s.remove(t, refs[1].partKey(0))
				if hole {
					want = points[1]
					newest, err := s.Checkpoint(t.Context(), points[1])
					if err != nil || newest.Replay <= points[0].Through {
						t.Fatalf("%+v follows %+v: %v", newest, points[0], err)
					}
					s.remove(t, points[1].Epoch.logKey(points[0].Through+1))
				}
				h, err := s.History(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range []time.Time{{}, points[1].Time} {
					h.Ignored = nil
					c, err := h.FindLacking(t.Context(), at, own)
					if err != nil || c.Point != want {
						t.Fatalf("%v is used, not %v: %v", c, want, err)
					}
					if len(h.Ignored) != 1 || h.Ignored[0].Key != points[1].key() {
						t.Errorf("named is %v", h.Ignored)
					}
				}
			})
		})
	}
}

func half(b []byte) []byte { return b[:len(b)/2] }

// TestNeededNamesLostLog: a log object of the newest epoch that is missing in the middle is damage, and not the end of the log.
func TestNeededNamesLostLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStored(t)
		src := &script{owner: "a"}
		w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
		defer kill(w)
		p := checkpoint(t, w, nil)
		for range maxInFlight + 4 {
			src.add(w, 100)
			flush(t, w)
		}
		missing := p.Epoch.logKey(p.Through + 3)
		for _, want := range []int{0, 1} {
			n, err := s.Needed(t.Context(), time.Time{})
			if err != nil || len(n.Damage) != want || want > 0 && (n.Damage[0].Key != missing || !n.Damage[0].IsLog()) {
				t.Errorf("%d damaged: %+v, %v", want, n, err)
			}
			if want == 0 {
				s.remove(t, missing)
			}
		}
	})
}

// TestDamagedLog: what is damaged, missing, exchanged or out of order ends the log for a
// reader with an error, or for the next epoch with the cut before it.
func TestDamagedLog(t *testing.T) {
	key := func(n uint64) string { return Epoch{Number: 1}.logKey(n) }
	for what, damage := range map[string]func(*testing.T, *stored){
		"changed":   func(t *testing.T, s *stored) { s.change(t, key(3), flipped) },
		"truncated": func(t *testing.T, s *stored) { s.change(t, key(3), half) },
		"empty":     func(t *testing.T, s *stored) { s.change(t, key(3), func([]byte) []byte { return nil }) },
		"missing":   func(t *testing.T, s *stored) { s.remove(t, key(3)) },
		"exchanged": func(t *testing.T, s *stored) {
			four, _ := os.ReadFile(s.path(key(4)))
			s.change(t, key(3), func([]byte) []byte { return four })
		},
		"of another chain": func(t *testing.T, s *stored) {
			b := &logBuilder{header: logHeader{seq: 3, previous: Hash{1}}}
			if err := b.add(Frame{Time: time.Now(), Body: OwnerDrop{"everything"}}); err != nil {
				t.Fatal(err)
			}
			object, _ := b.finish(s.zstd, nil)
			s.remove(t, key(3))
			if err := s.createSmall(t.Context(), key(3), object, objectstore.Retention{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStored(t)
				src := &script{owner: "a"}
				w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
				for range 5 {
					src.add(w, 100)
					flush(t, w)
				}
				kill(w)
				damage(t, s)
				h := claim(t, s.Repository, "one", false)
				if cut := h.Tip().Cut; cut.Log != 2 || !cut.Last.Equal(src.frames[1].Time) {
					t.Errorf("the cut is %+v", cut)
				}
				if named := len(h.Ignored) == 1 && h.Ignored[0].Key == key(3); named == (what == "missing") {
					t.Errorf("named is %v", h.Ignored)
				}
				if seen := texts(t, s.Repository, nil, time.Time{}); seen["a"] != 2 {
					t.Errorf("a reader sees %v", seen)
				}
			})
		})
	}
}

// TestDamageBeforeTheCut is an error: the log had more.
func TestDamageBeforeTheCut(t *testing.T) {
	s := newStored(t)
	src := &script{owner: "a"}
	w := open(t, claim(t, s.Repository, "one", false), Options{}, src)
	for range 5 {
		src.add(w, 100)
		flush(t, w)
	}
	kill(w)
	h := claim(t, s.Repository, "one", false)
	s.remove(t, Epoch{Number: 1}.logKey(4))
	n := 0
	for _, err := range h.Frames(t.Context(), nil, time.Time{}) {
		if err != nil {
			if !Damaged(err) {
				t.Error(err)
			}
			break
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d frames before the missing object", n)
	}
}

// TestUntil: a moment has the frames up to it, of all sources, and a point at or
// before it.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStored(t)
		a, b := &script{owner: "a"}, &script{owner: "b"}
		w := open(t, claim(t, s.Repository, "one", false), Options{}, a, b)
		began := time.Now()
		for i := range 60 {
			a.add(w, 100)
			b.add(w, 100)
			if i%20 == 10 {
				checkpoint(t, w, nil)
			}
			time.Sleep(time.Second)
		}
		kill(w)
		for _, second := range []int{5, 10, 11, 29, 35, 55} {
			at := began.Add(time.Duration(second)*time.Second + time.Millisecond)
			h, err := s.History(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c, err := h.Find(t.Context(), at)
			if second < 10 && !errors.Is(err, ErrNoPoint) || second >= 10 && (err != nil || c.Time.After(at)) {
				t.Errorf("second %d: %v, %v", second, c, err)
			}
			if seen := texts(t, s.Repository, c, at); seen["a"] != second+1 || seen["b"] != second+1 {
				t.Errorf("second %d: a reader sees %v", second, seen)
			}
		}
	})
}

func TestCatalogBlocksAreStoredOnce(t *testing.T) {
	store := &flaky{Store: directory(t)}
	r := repository(t, store, ring(t))
	w := open(t, claim(t, r, "one", false), Options{})
	entries := make([]Entry, 50_000)
	for i := range entries {
		entries[i] = Entry{Owner: "db", Kind: "pack", Name: fmt.Sprintf("%06d", i), Data: []byte{byte(i)}}
	}
	checkpoint(t, w, entries)
	first := store.count("create")
	if first < 20 || first > 120 {
		t.Errorf("the first checkpoint makes %d objects", first)
	}
	entries[30_000].Data = []byte("changed")
	checkpoint(t, w, append(entries, Entry{Owner: "db", Kind: "pack", Name: "000100x"}))
	if n := store.count("create") - first; n > 3 {
		t.Errorf("a checkpoint with two changes makes %d objects", n)
	}
	kill(w)
	_, c := find(t, r, time.Time{})
	if got := catalog(t, r, c); len(got) != 50_001 || c.Entries != 50_001 {
		t.Errorf("the catalog has %d entries", len(got))
	}
	// The next start knows the blocks too.
	before := store.count("create")
	next := open(t, claim(t, r, "one", false), Options{Previous: c})
	checkpoint(t, next, catalog(t, r, c))
	if n := store.count("create") - before; n != 2 { // the claim and the checkpoint
		t.Errorf("the checkpoint of the next start makes %d objects", n-1)
	}
	kill(next)
}

// TestPrune: what no moment within the retention needs goes, and nothing else.
func TestPrune(t *testing.T) {
	s := newStored(t)
	points, refs := twoPoints(t, s)
	makeOld(t, s.dir)
	plan, err := s.PlanPrune(t.Context(), time.Now(), points[0].Time)
	if err != nil || len(plan.Objects) != 1 || len(plan.Points) != 0 { // the log object before the first point
		t.Errorf("everything is needed: %+v, %v", plan, err)
	}
	plan, err = s.PlanPrune(t.Context(), time.Now(), points[1].Time.Add(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Points) != 1 || plan.Points[0] != points[0].key() {
		t.Errorf("points to go: %v", plan.Points)
	}
	if locked, err := s.Prune(t.Context(), plan); err != nil || locked != 0 {
		t.Fatal(locked, err)
	}
	h, c := find(t, s.Repository, time.Time{})
	if len(h.Ignored) > 0 || c.Point != points[1] {
		t.Errorf("after pruning: %v, %v", c.Point, h.Ignored)
	}
	for i, want := range []bool{false, true, true} {
		_, err := readFile(t, s.Repository, refs[i], 0, -1)
		if got := err == nil; got != want {
			t.Errorf("file %d: %v", i, err)
		}
	}
	for _, err := range h.Frames(t.Context(), c, time.Time{}) {
		if err != nil {
			t.Error(err)
		}
	}
	if again, err := s.PlanPrune(t.Context(), time.Now(), points[1].Time.Add(1)); err != nil || len(again.Objects)+len(again.Points) > 0 {
		t.Errorf("pruned again: %+v, %v", again, err)
	}
	// The next epoch begins where the log ended.
	if h := claim(t, s.Repository, "one", false); h.Tip().Cut.Log != 3 {
		t.Errorf("the cut after pruning is %+v", h.Tip().Cut)
	}
}

// TestPruneSparesTheYoung: what is not referenced yet may be soon.
func TestPruneSparesTheYoung(t *testing.T) {
	s := newStored(t)
	points, _ := twoPoints(t, s)
	plan, err := s.PlanPrune(t.Context(), time.Now(), points[1].Time.Add(1))
	if err != nil || len(plan.Points)+len(plan.Objects) > 0 {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestBrokenSource: a frame that no log object can have stops its source alone, and
// nothing behind it is copied as if it were not there.
func TestBrokenSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := repository(t, directory(t), ring(t))
		bad, good := &script{owner: "bad"}, &script{owner: "good"}
		w := open(t, claim(t, r, "one", false), Options{}, bad, good)
		bad.add(w, MaxFrame+1)
		bad.add(w, 10)
		good.add(w, 10)
		time.Sleep(time.Minute)
		if bad.acknowledged() != 0 || good.acknowledged() != 1 {
			t.Errorf("%d of the bad and %d of the good are acknowledged", bad.acknowledged(), good.acknowledged())
		}
		if st := w.Status(); st.Problem.Err == nil || st.Lag < 50*time.Second {
			t.Errorf("the status is %+v", st)
		}
		w.Remove(bad)
		flush(t, w)
		if st := w.Status(); st.Lag != 0 {
			t.Errorf("after the removal: %+v", st)
		}
		kill(w)
	})
}

func unwrapWith(identity age.Identity) func([]byte, uint32) (sealed.Key, error) {
	return func(wrapped []byte, number uint32) (sealed.Key, error) {
		return sealed.Unwrap(wrapped, number, identity)
	}
}

// TestInitWithoutMarker: a marker that is missing does not make a prefix with data empty. Master keys alone are those
// of an interrupted Init, which may be repeated.
func TestInitWithoutMarker(t *testing.T) {
	recipient, _ := identities(t)
	for object, want := range map[string]error{
		Epoch{Number: 1}.key():         ErrNoMarker,
		Epoch{Number: 1}.logKey(1):     ErrNoMarker,
		Epoch{Number: 1}.partKey(1, 0): ErrNoMarker,
		sealed.KeyName(1):              nil,
		"probe/1":                      nil,
	} {
		store := directory(t)
		if err := store.Create(t.Context(), object, objectstore.Bytes("sealed"), objectstore.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadMarker(t.Context(), store); want != nil && (!errors.Is(err, want) || errors.Is(err, objectstore.ErrNotFound)) {
			t.Errorf("with %s the marker is %v", object, err)
		}
		if _, _, err := Init(t.Context(), store, time.Now(), recipient); !errors.Is(err, want) {
			t.Errorf("with %s: %v", object, err)
		}
		if _, err := store.Stat(t.Context(), markerKey); (err == nil) != (want == nil) {
			t.Errorf("with %s there is a marker afterwards: %v", object, err)
		}
	}
}

func TestInit(t *testing.T) {
	store := directory(t)
	if _, err := ReadMarker(t.Context(), store); !errors.Is(err, objectstore.ErrNotFound) {
		t.Error(err)
	}
	recipient, identity := identities(t)
	made, key, err := Init(t.Context(), store, time.Now(), recipient)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := ReadMarker(t.Context(), store); err != nil || read.Repository != made.Repository || key.Number() != 1 {
		t.Errorf("%+v, %v", read, err)
	}
	if _, _, err := Init(t.Context(), store, time.Now(), recipient); !errors.Is(err, objectstore.ErrExists) {
		t.Errorf("a second Init: %v", err)
	}
	keys, err := LoadKeys(t.Context(), store, unwrapWith(identity))
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := keys.Rotate()
	if err == nil {
		err = AddKey(t.Context(), store, next, recipient)
	}
	if err != nil {
		t.Fatal(err)
	}
	if keys, err = LoadKeys(t.Context(), store, unwrapWith(identity)); err != nil || len(keys.Numbers()) != 2 {
		t.Errorf("after a rotation: %v, %v", keys, err)
	}
	_, other := identities(t)
	if _, err := LoadKeys(t.Context(), store, unwrapWith(other)); err == nil {
		t.Error("another identity opens the keys")
	}
	otherRecipient, other := identities(t)
	for _, number := range []uint32{0, 3} { // there is no key 0: a stranger's does not stop anybody either
		if err := AddKey(t.Context(), store, sealed.NewKey(number), otherRecipient); err != nil {
			t.Fatal(err)
		}
	}
	if keys, err = LoadKeys(t.Context(), store, unwrapWith(identity)); err != nil || len(keys.Numbers()) != 2 {
		t.Errorf("with a stranger's keys: %v, %v", keys, err)
	}
	_, err = LoadKeys(t.Context(), store, unwrapWith(other))
	if missing, ok := errors.AsType[*EarlierKeyError](err); !ok || missing.Number != 1 {
		t.Errorf("with the later key only: %+v", missing)
	}
	name := sealed.KeyName(1)
	if err := errors.Join(store.Delete(t.Context(), name), store.Create(t.Context(), name, objectstore.Bytes("damaged"), objectstore.CreateOptions{})); err != nil {
		t.Fatal(err)
	}
	_, err = LoadKeys(t.Context(), store, unwrapWith(identity))
	if missing, ok := errors.AsType[*EarlierKeyError](err); !ok || missing.Number != 1 || errors.Is(err, sealed.ErrLocked) {
		t.Errorf("with a damaged first key: %+v, %v", missing, err)
	}
	for _, text := range []string{"", "x", markerTitle, markerTitle + "00\n{}"} {
		if _, err := decodeMarker(text); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the marker %q: %v", text, err)
		}
	}
}

// TestBuffersAreReused: what was sealed from memory that is used again is not read from
// it any more.
func TestBuffersAreReused(t *testing.T) {
	b := small("before")
	r, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if n, err := r.Read(one); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	copy(b, "after ")
	if n, err := r.Read(one); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after Close: %d bytes, %v", n, err)
	}
}

// TestCloseHasADeadline: while the store is away, Close ends and says what remains.
func TestCloseHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		s := &script{owner: "a"}
		w := open(t, claim(t, repository(t, store, ring(t)), "one", false), Options{}, s)
		store.set(func(int, string, string) fault { return fails })
		s.add(w, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 11*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
