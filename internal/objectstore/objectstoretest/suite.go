package objectstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"holdfast/internal/objectstore"
)

// Subject is a store that the suite tests.
type Subject struct {
	// Open opens an empty store of its own each time. The suite closes it.
	Open func(t *testing.T, o objectstore.Options) objectstore.Store
	// Locks means that it has Object Lock.
	Locks bool
	// Found is what Probe must find. ClockSkew is not compared.
	Found objectstore.Capabilities
}

// Run tests a store.
func Run(t *testing.T, s Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"round trip": roundTrip, "ranges": ranges, "never overwrites": neverOverwrites, "create race": createRace,
		"missing": missing, "list": list, "list of many": listMany, "keys": keys, "bodies": bodies,
		"cancel": cancel, "limit": limit, "retention": retention, "delete": remove, "hidden": hidden, "probe": probe,
		"nothing is half there": nothingHalf,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func (s Subject) open(t *testing.T, o objectstore.Options) objectstore.Store {
	t.Helper()
	store := s.Open(t, o)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Random returns size bytes that are the same for the same seed.
func Random(size int, seed uint64) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func create(t *testing.T, s objectstore.Store, key string, content []byte) {
	t.Helper()
	if err := s.Create(t.Context(), key, objectstore.Bytes(content), objectstore.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Read returns a range of an object. It checks the lengths.
func Read(ctx context.Context, s objectstore.Store, key string, r objectstore.Range) ([]byte, error) {
	o, err := s.Get(ctx, key, r)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(o)
	if err == nil && int64(len(b)) != o.Length {
		err = fmt.Errorf("%d bytes come of %d", len(b), o.Length)
	}
	return b, errors.Join(err, o.Close())
}

func roundTrip(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	for _, size := range []int{0, 1, 4096, 64<<10 + 1, 5<<20 + 3, 17 << 20} {
		key, content := fmt.Sprintf("e/1/size-%d", size), Random(size, 1)
		before := time.Now()
		create(t, store, key, content)
		info, err := store.Stat(t.Context(), key)
		if err != nil || info.Key != key || info.Size != int64(size) || !info.RetainUntil.IsZero() {
			t.Errorf("%d bytes: Stat says %+v, %v", size, info, err)
		}
		if age := info.Modified.Sub(before); age < -5*time.Second || age > time.Minute {
			t.Errorf("%d bytes: modified %s after it was created", size, age)
		}
		o, err := store.Get(t.Context(), key, objectstore.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if o.Length != int64(size) || o.Info.Size != int64(size) || o.Info.Key != key {
			t.Errorf("%d bytes: Get says %d, %+v", size, o.Length, o.Info)
		}
		got, err := io.ReadAll(o)
		if err := errors.Join(err, o.Close()); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes do not come back: %d, %v", size, len(got), err)
		}
	}
}

func ranges(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	content := Random(100_000, 2)
	create(t, store, "a", content)
	create(t, store, "empty", nil)
	for _, r := range []objectstore.Range{{Offset: 0, Length: 1}, {Offset: 0, Length: 100_000}, {Offset: 99_999, Length: 1}, {Offset: 99_999, Length: 0}, {Offset: 5, Length: 0}, {Offset: 70_000, Length: 30_000}, {Offset: 1, Length: 65_536}} {
		want := content[r.Offset:]
		if r.Length > 0 {
			want = want[:r.Length]
		}
		if got, err := Read(t.Context(), store, "a", r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: %d bytes, %v", r, len(got), err)
		}
		o, err := store.Get(t.Context(), "a", r)
		if err != nil {
			t.Fatal(err)
		}
		if o.Info.Size != int64(len(content)) {
			t.Errorf("%+v: the object has %d bytes", r, o.Info.Size)
		}
		o.Close()
	}
	for _, r := range []objectstore.Range{{Offset: 0, Length: 100_001}, {Offset: 99_999, Length: 2}, {Offset: 100_000}, {Offset: 100_001}, {Offset: 100_001, Length: 1}} {
		if _, err := Read(t.Context(), store, "a", r); !errors.Is(err, objectstore.ErrCorrupt) {
			t.Errorf("%+v of 100000 bytes: %v, want %v", r, err, objectstore.ErrCorrupt)
		}
	}
	if _, err := Read(t.Context(), store, "empty", objectstore.Range{Length: 1}); !errors.Is(err, objectstore.ErrCorrupt) {
		t.Errorf("a byte of an empty object: %v", err)
	}
}

func neverOverwrites(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	create(t, store, "x/1", []byte("first"))
	for _, other := range []string{"first", "second", ""} {
		err := store.Create(t.Context(), "x/1", objectstore.Bytes(other), objectstore.CreateOptions{})
		if !errors.Is(err, objectstore.ErrExists) {
			t.Errorf("Create of what exists: %v, want %v", err, objectstore.ErrExists)
		}
		if e := (*objectstore.Error)(nil); !errors.As(err, &e) || e.Act != "create" || e.Key != "x/1" {
			t.Errorf("the error does not say what was done: %v", err)
		}
	}
	if got, err := Read(t.Context(), store, "x/1", objectstore.Range{}); err != nil || string(got) != "first" {
		t.Errorf("the object holds %q, %v", got, err)
	}
}

// createRace: of several creators of each key one succeeds, and the object is its.
func createRace(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	for i := range 20 {
		key, winner := fmt.Sprintf("race/%d", i), atomic.Int32{}
		var all sync.WaitGroup
		winner.Store(-1)
		for n := range 8 {
			all.Go(func() {
				err := store.Create(t.Context(), key, objectstore.Bytes(strings.Repeat(fmt.Sprint(n), 1000)), objectstore.CreateOptions{})
				if err == nil && !winner.CompareAndSwap(-1, int32(n)) {
					t.Errorf("%s has two winners", key)
				}
				if err != nil && !errors.Is(err, objectstore.ErrExists) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		got, err := Read(t.Context(), store, key, objectstore.Range{})
		if want := strings.Repeat(fmt.Sprint(winner.Load()), 1000); err != nil || string(got) != want {
			t.Errorf("%s has %.3q, want %.3q: %v", key, got, want, err)
		}
	}
}

func missing(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	create(t, store, "here/too", []byte("x"))
	for _, key := range []string{"nothing", "here/not", "not/here/either", "here"} {
		if _, err := store.Stat(t.Context(), key); !errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("Stat of %s: %v", key, err)
		}
		if _, err := store.Get(t.Context(), key, objectstore.Range{}); !errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("Get of %s: %v", key, err)
		}
	}
	if got := keysOf(t, store, "no", ""); got != nil {
		t.Errorf("List of nothing: %v", got)
	}
}

func keysOf(t *testing.T, s objectstore.Store, prefix, after string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// list: the order is that of the bytes of keys, in which "a-b" comes before "a/b".
func list(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	all := []string{"a-b", "a/b", "a/b-c", "a/b.c", "a/c/d", "a/c0", "a0", "b/x/y/z", "c", "probably"}
	for i, key := range slices.Backward(all) {
		create(t, store, key, Random(i, 3))
	}
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/c", "a/c/", "b/x/y", "c", "z"} {
		for _, after := range append([]string{"", "0", "a", "a/", "a/bb", "zz"}, all...) {
			var want []string
			for _, key := range all {
				if strings.HasPrefix(key, prefix) && key > after {
					want = append(want, key)
				}
			}
			if got := keysOf(t, store, prefix, after); !slices.Equal(got, want) {
				t.Errorf("List(%q, after %q): %v, want %v", prefix, after, got, want)
			}
		}
	}
	i := 0
	for info, err := range store.List(t.Context(), "", "") {
		if err != nil || info.Size != int64(i) || info.Modified.IsZero() {
			t.Errorf("%+v, %v", info, err)
		}
		if i++; i == 3 {
			break
		}
	}
}

// listMany lists more than a page.
func listMany(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	const many = 1100
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := part; i < many; i += 4 {
				if err := store.Create(t.Context(), fmt.Sprintf("p/%05d", i), objectstore.Bytes("x"), objectstore.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := keysOf(t, store, "p/", ""); len(got) != many || !slices.IsSorted(got) {
		t.Errorf("%d of %d are listed", len(got), many)
	}
	if got := keysOf(t, store, "p/", "p/00049"); len(got) != many-50 || got[0] != "p/00050" {
		t.Errorf("%d are listed after the fiftieth, want %d", len(got), many-50)
	}
}

func keys(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	long := strings.Repeat(strings.Repeat("x", 99)+"/", 5) + "abcdefghijkl"
	for _, key := range []string{"A", "a.b_c=d-e", "0/1/2/3/4/5/6/7/8/9", strings.Repeat("s", 200), long} {
		create(t, store, key, []byte(key))
		if got, err := Read(t.Context(), store, key, objectstore.Range{}); err != nil || string(got) != key {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.b", ".incoming/x", "a b", "ü", "a\x00", "a\\b", "a?b", "a%2Fb", long + "m", strings.Repeat("s", 201)} {
		err := store.Create(t.Context(), key, objectstore.Bytes("x"), objectstore.CreateOptions{})
		if !errors.Is(err, objectstore.ErrUnsupported) {
			t.Errorf("Create of %q: %v, want %v", key, err, objectstore.ErrUnsupported)
		}
		if _, err := store.Get(t.Context(), key, objectstore.Range{}); !errors.Is(err, objectstore.ErrUnsupported) {
			t.Errorf("Get of %q: %v", key, err)
		}
	}
	for _, err := range store.List(t.Context(), "../", "") {
		if !errors.Is(err, objectstore.ErrUnsupported) {
			t.Errorf("List of ../: %v", err)
		}
	}
}

// body is a Body that goes wrong.
type body struct {
	size int64
	open func() (io.Reader, error)
}

func (b body) Size() int64 { return b.size }

func (b body) Open() (io.ReadCloser, error) {
	r, err := b.open()
	return io.NopCloser(r), err
}

var errBody = errors.New("the source cannot be read: unexpected EOF")

// bodies: errors of a body are the caller's and not the store's, and nothing is
// stored.
func bodies(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{Patience: time.Second})
	const size = 300_000
	for what, b := range map[string]body{
		"cannot be opened": {size, func() (io.Reader, error) { return nil, errBody }},
		"cannot be read":   {size, func() (io.Reader, error) { return io.MultiReader(bytes.NewReader(Random(100_000, 1)), failing{}), nil }},
	} {
		if err := store.Create(t.Context(), "bad", b, objectstore.CreateOptions{}); !errors.Is(err, errBody) {
			t.Errorf("a body that %s: %v, want %v", what, err, errBody)
		}
	}
	for what, b := range map[string]body{
		"is short":       {size, func() (io.Reader, error) { return bytes.NewReader(Random(size-1, 1)), nil }},
		"is long":        {size, func() (io.Reader, error) { return bytes.NewReader(Random(size+1, 1)), nil }},
		"is too large":   {objectstore.MaxSize + 1, func() (io.Reader, error) { return failing{}, nil }},
		"has a negative": {-1, func() (io.Reader, error) { return failing{}, nil }},
	} {
		if err := store.Create(t.Context(), "bad", b, objectstore.CreateOptions{}); err == nil {
			t.Errorf("a body that %s size has no error", what)
		}
	}
	if _, err := store.Stat(t.Context(), "bad"); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("something was stored: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBody }

func cancel(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	create(t, store, "a", Random(16<<20, 1)) // more than the sockets hold
	ctx, cancel := context.WithCancel(t.Context())
	o, err := store.Get(ctx, "a", objectstore.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	cancel()
	if _, err := io.ReadAll(o); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: %v", err)
	}
	_, statErr := store.Stat(ctx, "a")
	_, getErr := store.Get(ctx, "a", objectstore.Range{})
	var listErr error
	for _, err := range store.List(ctx, "", "") {
		listErr = err
	}
	for what, err := range map[string]error{
		"Create": store.Create(ctx, "b", objectstore.Bytes("x"), objectstore.CreateOptions{}),
		"Delete": store.Delete(ctx, "a"), "Stat": statErr, "Get": getErr, "List": listErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", what, err, context.Canceled)
		}
	}
}

// limit: uploads keep to the limit together.
func limit(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{Limiter: rate.NewLimiter(1<<20, 64<<10)})
	began := time.Now()
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() { create(t, store, fmt.Sprint("limited-", i), Random(512<<10, 1)) })
	}
	all.Wait()
	if took := time.Since(began); took < 850*time.Millisecond {
		t.Errorf("1 MiB at 1 MiB a second took %s", took)
	}
}

func retention(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	locked := objectstore.CreateOptions{Retention: objectstore.Retention{Mode: objectstore.Governance, Until: until}}
	err := store.Create(t.Context(), "locked", objectstore.Bytes("x"), locked)
	if !s.Locks {
		create(t, store, "a", []byte("x"))
		for what, err := range map[string]error{"Create": err, "Retain": store.Retain(t.Context(), "a", locked.Retention)} {
			if !errors.Is(err, objectstore.ErrUnsupported) {
				t.Errorf("%s without Object Lock: %v, want %v", what, err, objectstore.ErrUnsupported)
			}
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	retained(t, store, "locked", until)
	if err := store.Delete(t.Context(), "locked"); !errors.Is(err, objectstore.ErrLocked) {
		t.Errorf("Delete of a locked object: %v, want %v", err, objectstore.ErrLocked)
	}
	create(t, store, "later", []byte("x"))
	for _, change := range []struct{ to, want time.Duration }{{time.Hour, time.Hour}, {2 * time.Hour, 2 * time.Hour}, {time.Minute, 2 * time.Hour}} {
		r := objectstore.Retention{Mode: objectstore.Governance, Until: until.Add(change.to)}
		if err := store.Retain(t.Context(), "later", r); err != nil {
			t.Fatalf("Retain for %s more: %v", change.to, err)
		}
		retained(t, store, "later", until.Add(change.want))
	}
	if err := store.Retain(t.Context(), "missing", locked.Retention); !errors.Is(err, objectstore.ErrNotFound) {
		t.Errorf("Retain of nothing: %v, want %v", err, objectstore.ErrNotFound)
	}
	if err := store.Retain(t.Context(), "later", objectstore.Retention{}); !errors.Is(err, objectstore.ErrUnsupported) {
		t.Errorf("Retain without a time: %v", err)
	}
}

func retained(t *testing.T, s objectstore.Store, key string, until time.Time) {
	t.Helper()
	info, err := s.Stat(t.Context(), key)
	if err != nil || !info.RetainUntil.Equal(until) || info.Mode != objectstore.Governance {
		t.Errorf("%s is retained until %s (%s), %v, want %s", key, info.RetainUntil, info.Mode, err, until)
	}
}

func remove(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	create(t, store, "d/a", []byte("x"))
	create(t, store, "d/ab", []byte("y"))
	for range 2 { // a second time there is nothing
		if err := store.Delete(t.Context(), "d/a"); err != nil {
			t.Fatal(err)
		}
		if got := keysOf(t, store, "", ""); !slices.Equal(got, []string{"d/ab"}) {
			t.Errorf("after Delete: %v", got)
		}
	}
	if err := store.Delete(t.Context(), "no/such"); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	create(t, store, "d/a", []byte("z"))
	if got, err := Read(t.Context(), store, "d/a", objectstore.Range{}); err != nil || string(got) != "z" {
		t.Errorf("created again: %q, %v", got, err)
	}
}

// hidden: what is there, and what was deleted in every version, is not hidden.
func hidden(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	create(t, store, "d/a", []byte("x"))
	create(t, store, "d/b", []byte("y"))
	if err := store.Delete(t.Context(), "d/a"); err != nil {
		t.Fatal(err)
	}
	if is, err := store.Hidden(t.Context(), ""); err != nil || is {
		t.Errorf("an object is hidden: %t, %v", is, err)
	}
}

func probe(t *testing.T, s Subject) {
	store := s.open(t, objectstore.Options{})
	got, err := store.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked, err := store.ClockSkew(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, skew := range []time.Duration{got.ClockSkew, asked} {
		if skew < -3*time.Second || skew > 3*time.Second {
			t.Errorf("the clocks of one machine are %s apart", skew)
		}
	}
	got.ClockSkew = 0
	if got != s.Found {
		t.Errorf("Probe finds %+v, want %+v", got, s.Found)
	}
	if left := keysOf(t, store, "", ""); len(left) > 0 {
		t.Errorf("Probe leaves %v", left)
	}
}

// nothingHalf: while an object is written slowly, nobody sees it.
func nothingHalf(t *testing.T, s Subject) {
	const size = 4 << 20 // four seconds at the limit
	store := s.open(t, objectstore.Options{Limiter: rate.NewLimiter(1<<20, 64<<10)})
	done := make(chan error, 1)
	var creating sync.WaitGroup
	creating.Go(func() {
		done <- store.Create(t.Context(), "slow", objectstore.Bytes(Random(size, 1)), objectstore.CreateOptions{})
	})
	defer creating.Wait()
	for looks := 0; ; looks++ {
		info, err := store.Stat(t.Context(), "slow")
		listed := keysOf(t, store, "slow", "")
		switch {
		case err == nil && info.Size != size:
			t.Fatalf("an object of %d bytes is there with %d", size, info.Size)
		case err != nil && !errors.Is(err, objectstore.ErrNotFound):
			t.Fatal(err)
		case len(listed) > 1:
			t.Fatalf("one object is listed as %v", listed)
		}
		select {
		case err := <-done:
			if err != nil || looks == 0 {
				t.Fatalf("looked %d times meanwhile: %v", looks, err)
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
