package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// TestEveryCallFails: whatever call of the store fails or loses its answer, the
// Writer goes on by itself and everything arrives once.
func TestEveryCallFails(t *testing.T) {
	for _, kind := range []fault{fails, loses} {
		for n, done := 1, false; !done; n++ {
			synctest.Test(t, func(t *testing.T) {
				store := &flaky{Store: directory(t)}
				r := repository(t, store, ring(t))
				h := claim(t, r, "one", false)
				calls := 0
				store.set(func(call int, _, _ string) fault {
					calls = call
					if call == n {
						return kind
					}
					return none
				})
				w := open(t, h, Options{}, &script{owner: "idle"})
				s := &script{owner: "a"}
				defer kill(w)
				writeSome(t, w, s)
				store.set(nil)
				if seen := texts(t, r, nil, time.Time{}); seen["a"] != 4 {
					t.Errorf("call %d: a reader sees %v", n, seen)
				}
				if done = calls < n; done && n < 8 {
					t.Errorf("only %d calls", calls)
				}
				if w.Err() != nil {
					t.Fatalf("call %d: %v", n, w.Err())
				}
				_, c := find(t, r, time.Time{})
				if got := catalog(t, r, c); len(got) != 3 {
					t.Errorf("call %d: the catalog has %v", n, got)
				}
			})
		}
	}
}

// writeSome stores three files, log objects and a checkpoint.
func writeSome(t *testing.T, w *Writer, s *script) {
	t.Helper()
	w.Add(s)
	for range 3 {
		s.add(w, 100)
		flush(t, w)
	}
	checkpoint(t, w, storeEntries(t, w, 3))
	s.add(w, 100)
	flush(t, w)
	if s.acknowledged() != 4 {
		t.Errorf("%d of 4 frames are acknowledged", s.acknowledged())
	}
}

// TestCrashAtEveryCreate: the process dies at the n-th creation, before or after it
// took effect; the next start sees a prefix that has everything acknowledged, and a
// late request that was under way does no harm.
func TestCrashAtEveryCreate(t *testing.T) {
	for _, kind := range []fault{fails, loses, hangs} {
		for n, done := 1, false; !done; n++ {
			synctest.Test(t, func(t *testing.T) {
				store := &flaky{Store: directory(t)}
				r := repository(t, store, ring(t))
				h := claim(t, r, "one", false)
				crash, ctx := make(chan struct{}), t.Context()
				creates := 0
				store.set(func(_ int, act, _ string) fault {
					if act != "create" {
						return none
					}
					if creates++; creates == n {
						close(crash)
					}
					if creates >= n {
						return kind
					}
					return none
				})
				a, b := &script{owner: "a"}, &script{owner: "b"}
				w := open(t, h, Options{MaxBackOff: time.Hour}, a, b)
				go func() { <-crash; w.cancel(errors.New("killed")) }()
				write := func() error {
					for i := range 6 {
						a.add(w, 100)
						b.add(w, 3000)
						if _, err := w.Flush(ctx); err != nil {
							return err
						}
						if i == 3 {
							ref, err := w.Store(ctx, bytes.NewReader([]byte("file")))
							if err != nil {
								return err
							}
							if _, err := w.Checkpoint(ctx, func(context.Context) ([]Entry, error) { return []Entry{{Name: "x", Ref: ref}}, nil }); err != nil {
								return err
							}
						}
					}
					return nil
				}
				done = write() == nil
				kill(w)
				if done {
					close(crash)
				}
				store.set(nil)
				next := open(t, claim(t, r, "one", false), Options{})
				defer kill(next)
				seen := texts(t, r, nil, time.Time{})
				for _, s := range []*script{a, b} {
					if seen[s.owner] < s.acknowledged() || seen[s.owner] > len(s.frames) {
						t.Errorf("creation %d: of %s %d frames are acknowledged, a reader sees %d", n, s.owner, s.acknowledged(), seen[s.owner])
					}
				}
				rest := a.rewind(seen["a"])
				writeRest(t, next, rest)
				if all := texts(t, r, nil, time.Time{}); all["a"] != len(a.frames) {
					t.Errorf("creation %d: after the next start a reader sees %v", n, all)
				}
			})
		}
	}
}

func writeRest(t *testing.T, w *Writer, s *script) {
	t.Helper()
	w.Add(s)
	flush(t, w)
}

// TestOutage: a store that is away for a week costs nothing but the week.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		r := repository(t, store, ring(t))
		h := claim(t, r, "one", false)
		s := &script{owner: "a"}
		w := open(t, h, Options{}, s)
		s.add(w, 100)
		flush(t, w)
		store.set(func(int, string, string) fault { return fails })
		began := time.Now()
		for range 7 * 24 {
			s.add(w, 10_000)
			time.Sleep(time.Hour)
		}
		if lag := w.Status().Lag; lag < 7*24*time.Hour-time.Minute || lag > time.Since(began) {
			t.Errorf("after a week the lag is %s", lag)
		}
		if p := w.Status().Problem; !errors.Is(p.Err, objectstore.ErrUnavailable) || p.Since.Sub(began) > time.Minute {
			t.Errorf("the problem is %+v", p)
		}
		if s.held > 8 {
			t.Errorf("%d frames were taken from the source during the outage", s.held)
		}
		if free := w.budget.free; free < w.options.Memory-maxLogPlain-100_000 {
			t.Errorf("the outage holds %d bytes", w.options.Memory-free)
		}
		attempts := store.count("create")
		if attempts > 7*24*(1440+5*130) {
			t.Errorf("%d attempts in a week", attempts)
		}
		store.set(nil)
		flush(t, w)
		if took := time.Since(began.Add(7 * 24 * time.Hour)); took > 10*time.Second {
			t.Errorf("it took %s to go on", took)
		}
		if seen := texts(t, r, nil, time.Time{}); seen["a"] != 169 {
			t.Errorf("a reader sees %v of 169", seen)
		}
		if st := w.Status(); st.Lag != 0 || st.Problem.Err != nil {
			t.Errorf("after the outage: %+v", st)
		}
		kill(w)
	})
}

// TestAfterOutage: however long a store was away, what waits for it is stored a few seconds after it is back.
func TestAfterOutage(t *testing.T) {
	for _, outage := range []time.Duration{7 * time.Second, 27 * time.Second, 100 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store := &flaky{Store: directory(t)}
			s := &script{owner: "a"}
			w := open(t, claim(t, repository(t, store, ring(t)), "one", false), Options{}, s)
			store.set(func(int, string, string) fault { return fails })
			for began := time.Now(); time.Since(began) < outage; time.Sleep(time.Second) {
				s.add(w, 100)
			}
			store.set(nil)
			back := time.Now()
			flush(t, w)
			if took := time.Since(back); took > 10*time.Second {
				t.Errorf("an outage of %s, and then it took %s to go on", outage, took)
			}
			if st := w.Status(); st.Lag != 0 || st.Problem.Err != nil {
				t.Errorf("after an outage of %s: %+v", outage, st)
			}
			kill(w)
		})
	}
}

// TestOneThatWaits: copying does not seem to go on while one of several acts still fails, and the log says once that it does.
func TestOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		s := &script{owner: "a"}
		var log bytes.Buffer
		w := open(t, claim(t, repository(t, store, ring(t)), "one", false), Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, s)
		store.set(func(_ int, _, key string) fault {
			if key == w.Epoch().logKey(1) {
				return fails
			}
			return none
		})
		for range 60 {
			s.add(w, 100)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if _, err := w.Store(t.Context(), bytes.NewReader([]byte("file"))); err != nil {
			t.Fatal(err)
		}
		if st := w.Status(); st.Problem.Err == nil || st.Lag < 50*time.Second {
			t.Errorf("while an object waits: %+v", st)
		}
		if strings.Contains(log.String(), "goes on") {
			t.Errorf("the log says that copying goes on: %s", log.String())
		}
		store.set(nil)
		flush(t, w)
		if st := w.Status(); st.Problem.Err != nil {
			t.Errorf("when nothing waits: %+v", st)
		}
		kill(w)
		if n := strings.Count(log.String(), "goes on"); n != 1 {
			t.Errorf("the log says %d times that copying goes on: %s", n, log.String())
		}
	})
}

// TestAtRest: without changes there is no request but the look for other machines.
func TestAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		w := open(t, claim(t, repository(t, store, ring(t)), "one", false), Options{}, &script{owner: "a"})
		synctest.Wait()
		before := [3]int{store.count("create"), store.count("get"), store.count("list")}
		time.Sleep(time.Hour + time.Second)
		if n := store.count("create") + store.count("get") - before[0] - before[1]; n != 0 {
			t.Errorf("%d requests in an hour", n)
		}
		if n := store.count("list") - before[2]; n != 120 {
			t.Errorf("%d listings in an hour, not 120", n)
		}
		kill(w)
	})
}

// TestUnderLoad: changes all the time make one object an interval.
func TestUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: directory(t)}
		s := &script{owner: "a"}
		w := open(t, claim(t, repository(t, store, ring(t)), "one", false), Options{}, s)
		before, longest := store.count("create"), time.Duration(0)
		for range 6000 {
			s.add(w, 100)
			time.Sleep(10 * time.Millisecond)
			longest = max(longest, w.Status().Lag)
		}
		flush(t, w)
		if n := store.count("create") - before; n > 63 {
			t.Errorf("%d objects in a minute", n)
		}
		if longest > 1100*time.Millisecond {
			t.Errorf("the lag rises to %s", longest)
		}
		kill(w)
	})
}

func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := repository(t, directory(t), ring(t))
		s := &script{owner: "a"}
		old := open(t, claim(t, r, "old", false), Options{}, s)
		for range 5 {
			s.add(old, 100)
			flush(t, old)
		}
		checkpoint(t, old, nil)
		if _, err := r.Claim(t.Context(), time.Now(), ClaimOptions{Machine: "new", Token: "new"}); !errors.Is(err, ErrTaken) {
			t.Fatalf("a claim without taking over: %v", err)
		}
		h := claim(t, r, "new", true)
		seenAtCut := texts(t, r, nil, time.Time{})
		// The old machine does not know yet, and stores what nobody will read.
		s.add(old, 100)
		flush(t, old)
		if _, err := old.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) { return nil, nil }); !errors.Is(err, ErrFenced) {
			t.Errorf("a checkpoint after the takeover: %v", err)
		}
		if !errors.Is(old.Err(), ErrFenced) {
			t.Errorf("the old writer goes on: %v", old.Err())
		}
		if _, err := old.Store(t.Context(), bytes.NewReader([]byte("late"))); !errors.Is(err, ErrFenced) {
			t.Errorf("a file after the takeover: %v", err)
		}
		if seen := texts(t, r, nil, time.Time{}); seen["a"] != seenAtCut["a"] || seen["a"] != 5 {
			t.Errorf("a late write reaches readers: %v, then %v", seenAtCut, seen)
		}
		n := &script{owner: "b"}
		w := open(t, h, Options{}, n)
		n.add(w, 100)
		flush(t, w)
		if seen := texts(t, r, nil, time.Time{}); seen["a"] != 5 || seen["b"] != 1 {
			t.Errorf("after the takeover a reader sees %v", seen)
		}
		if _, err := r.Claim(t.Context(), time.Now(), ClaimOptions{Machine: "old", Token: "old 2", Known: []string{"old"}}); !errors.Is(err, ErrTaken) {
			t.Errorf("the old machine starts again: %v", err)
		}
		kill(old)
		kill(w)
		var machines []string
		for c, err := range h.Claims(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			machines = append(machines, c.Machine)
		}
		if !slices.Equal(machines, []string{"new", "old"}) {
			t.Errorf("the machines are %v", machines)
		}
	})
}

// TestNoticesWhileIdle: a machine that writes nothing notices too.
func TestNoticesWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := repository(t, directory(t), ring(t))
		old := open(t, claim(t, r, "old", false), Options{}, &script{owner: "a"})
		time.Sleep(time.Minute)
		claim(t, r, "new", true)
		<-old.Done()
		if !errors.Is(old.Err(), ErrFenced) {
			t.Error(old.Err())
		}
		kill(old)
	})
}

// TestJunkClaims: what anybody can put into the store neither stops a machine nor
// becomes the newest epoch.
func TestJunkClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := directory(t)
		r := repository(t, store, ring(t))
		w := open(t, claim(t, r, "one", false), Options{}, &script{owner: "a"})
		junk(t, store, "epoch/00000002", "junk")
		junk(t, store, "epoch/ffffffff", "junk")
		unknown, err := sealed.NewRing(sealed.NewKey(7))
		if err != nil {
			t.Fatal(err)
		}
		forger := repository(t, store, unknown)
		for _, key := range []string{"epoch/00000003", announcement(7), announcement(2)} {
			if err := forger.createSmall(t.Context(), key, []byte("{}"), objectstore.Retention{}); err != nil {
				t.Fatal(err)
			}
		}
		junk(t, store, "epoch/00000004", "holdfast sealed object of another version")
		checkpoint(t, w, nil)
		time.Sleep(time.Minute)
		if foreign := w.Status().Foreign; w.Err() != nil || len(foreign) != 4 {
			t.Errorf("%v, %v", foreign, w.Err())
		}
		kill(w)
		h := claim(t, r, "one", false)
		if got := h.Tip().Epoch; got != (Epoch{Number: 5}) || len(h.Ignored) == 0 {
			t.Errorf("the next epoch is %s, passed over was %v", got, h.Ignored)
		}
	})
}

// TestClaimNotFound: a claim that is listed and cannot be found is not a stranger's: it is looked for again.
func TestClaimNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &notFound{Store: directory(t), key: Epoch{Number: 2}.key()}
		keys := ring(t)
		r := repository(t, store, keys)
		old := open(t, claim(t, r, "old", false), Options{}, &script{owner: "a"})
		claim(t, repository(t, store.Store, keys), "new", true)
		store.left.Store(1)
		if h, err := r.History(t.Context()); err != nil || h.Tip().Epoch != (Epoch{Number: 2}) {
			t.Errorf("not found once: %+v, %v", h, err)
		}
		store.left.Store(1000)
		if h, err := r.History(t.Context()); err == nil || Damaged(err) {
			t.Errorf("not found each time: %+v, %v", h, err)
		}
		if err := old.Err(); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
		store.left.Store(0)
		time.Sleep(2 * time.Minute)
		if err := old.Err(); !errors.Is(err, ErrFenced) {
			t.Errorf("afterwards: %v", err)
		}
		kill(old)
	})
}

// TestClaimOfALaterKey: a machine that lacks the newest master key neither takes the copy from the
// one that has it, nor goes on below its claim, nor takes itself for fenced.
func TestClaimOfALaterKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := directory(t)
		old := sealed.NewKey(1)
		stale, err := sealed.NewRing(old)
		if err != nil {
			t.Fatal(err)
		}
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		r := repository(t, store, stale)
		later, err := r.Rotate(t.Context(), identity.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		both, err := sealed.NewRing(old, later)
		if err != nil {
			t.Fatal(err)
		}
		w := open(t, claim(t, r, "stale", false), Options{}, &script{owner: "a"})
		claim(t, repository(t, store, both), "healthy", true)
		_, err = w.Checkpoint(t.Context(), func(context.Context) ([]Entry, error) { return nil, nil })
		if !errors.Is(err, sealed.ErrNoKey) || !errors.Is(w.Err(), sealed.ErrNoKey) || errors.Is(w.Err(), ErrFenced) {
			t.Errorf("the writer: %v, then %v", err, w.Err())
		}
		kill(w)
		for _, nonce := range []string{"", "0000000000000000"} {
			_, err := r.Claim(t.Context(), time.Now(), ClaimOptions{Machine: "stale", Token: "stale", Known: []string{"stale"}, Nonce: nonce})
			if !errors.Is(err, sealed.ErrNoKey) || errors.Is(err, ErrTaken) {
				t.Errorf("a claim with the nonce %q: %v", nonce, err)
			}
		}
		h, err := repository(t, store, both).History(t.Context())
		if err != nil || h.Tip().Machine != "healthy" {
			t.Errorf("the newest claim: %v", err)
		}
	})
}

func junk(t *testing.T, store objectstore.Store, key, content string) {
	t.Helper()
	if err := store.Create(t.Context(), key, objectstore.Bytes(content), objectstore.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestForeignLogObject: two machines with one claim, a copied disk for example.
func TestForeignLogObject(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	h := claim(t, r, "one", false)
	a, b := &script{owner: "a"}, &script{owner: "b"}
	first, second := open(t, h, Options{}, a), open(t, h, Options{}, b)
	a.add(first, 100)
	flush(t, first)
	b.add(second, 100)
	if _, err := second.Flush(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("the second writer: %v", err)
	}
	if b.acknowledged() != 0 || first.Err() != nil {
		t.Errorf("%d acknowledged, the first writer: %v", b.acknowledged(), first.Err())
	}
	kill(first)
	kill(second)
}

// TestClaimRace: of machines that claim at once one wins, with conditional creation
// and without.
func TestClaimRace(t *testing.T) {
	for _, conditional := range []bool{true, false} {
		for round := range 20 {
			synctest.Test(t, func(t *testing.T) {
				var store objectstore.Store = directory(t)
				if !conditional {
					store = &slow{Store: store, rng: rand.New(rand.NewPCG(1, uint64(round)))}
				}
				keys := ring(t)
				type result struct {
					name string
					h    *History
					err  error
				}
				results := make(chan result, 4)
				for i := range 4 {
					o := ClaimOptions{Machine: fmt.Sprint("m", i), Token: fmt.Sprint(i)}
					if !conditional {
						o.Nonce = fmt.Sprintf("%016d", (i*7+round)%13)
					}
					r := repository(t, store, keys)
					go func() {
						h, err := r.Claim(t.Context(), time.Now(), o)
						results <- result{o.Machine, h, err}
					}()
				}
				var winners []string
				for range 4 {
					if got := <-results; got.err == nil {
						winners = append(winners, got.name)
					} else if !errors.Is(got.err, ErrTaken) {
						t.Error(got.err)
					}
				}
				tip, err := repository(t, store, keys).History(t.Context())
				if err != nil && len(winners) > 0 {
					t.Fatal(err)
				}
				if conditional && len(winners) != 1 {
					t.Errorf("the winners are %v", winners)
				}
				if len(winners) > 0 && !slices.Contains(winners, tip.Tip().Machine) {
					t.Errorf("the winners are %v, readers see %q", winners, tip.Tip().Machine)
				}
			})
		}
	}
}

// TestClaimAfterADeadBid: a machine that died between its bid and its claim holds the
// others up once.
func TestClaimAfterADeadBid(t *testing.T) {
	r := repository(t, directory(t), ring(t))
	dead := Claim{Epoch: Epoch{1, "0"}, Machine: "dead"}
	b, err := dead.encode()
	if err == nil {
		err = r.createSmall(t.Context(), bidsPrefix+dead.Epoch.String(), b, objectstore.Retention{})
	}
	if err != nil {
		t.Fatal(err)
	}
	o := ClaimOptions{Machine: "m", Token: "t", Nonce: "5"}
	if _, err := r.Claim(t.Context(), time.Now(), o); !errors.Is(err, ErrTaken) {
		t.Errorf("against a lower bid: %v", err)
	}
	h, err := r.Claim(t.Context(), time.Now(), o)
	if err != nil || h.Tip().Epoch != (Epoch{2, "5"}) {
		t.Errorf("again: %v, %v", h, err)
	}
}

// TestClaimLosesItsAnswer: a machine knows its own claim again.
func TestClaimLosesItsAnswer(t *testing.T) {
	store := &flaky{Store: directory(t)}
	r := repository(t, store, ring(t))
	store.set(func(_ int, act, _ string) fault {
		if act == "create" {
			return loses
		}
		return none
	})
	o := ClaimOptions{Machine: "m", Token: "t", Known: []string{"t"}}
	if _, err := r.Claim(t.Context(), time.Now(), o); !errors.Is(err, objectstore.ErrUnavailable) {
		t.Errorf("without an answer: %v", err)
	}
	store.set(nil)
	if h, err := r.Claim(t.Context(), time.Now(), o); err != nil || h.Tip().Epoch.Number != 2 {
		t.Errorf("again: %v, %v", h, err)
	}
}

// slow takes its time, so that requests overlap.
type slow struct {
	objectstore.Store
	mu  sync.Mutex
	rng *rand.Rand
}

func (s *slow) Create(ctx context.Context, key string, body objectstore.Body, o objectstore.CreateOptions) error {
	s.mu.Lock()
	pause := time.Duration(s.rng.IntN(1000)) * time.Millisecond
	s.mu.Unlock()
	time.Sleep(pause)
	return s.Store.Create(ctx, key, body, o)
}

// TestModel lets a machine live through crashes, outages and takeovers at random, and
// compares what a reader sees with what was acknowledged.
func TestModel(t *testing.T) {
	for seed := range 20 {
		synctest.Test(t, func(t *testing.T) { liveAtRandom(t, rand.New(rand.NewPCG(7, uint64(seed)))) })
	}
}

func liveAtRandom(t *testing.T, rng *rand.Rand) {
	m := &model{
		rng: rng, faults: rand.New(rand.NewPCG(rng.Uint64(), 0)), store: &flaky{Store: directory(t)},
		scripts: map[string]*script{"a": {owner: "a"}, "b": {owner: "b"}, "c": {owner: "c"}},
	}
	m.repo = repository(t, m.store, ring(t))
	m.start(t)
	for range 60 {
		for _, name := range []string{"a", "b", "c"} {
			for range rng.IntN(3) {
				m.scripts[name].add(m.writer, 20+rng.IntN(2000))
			}
		}
		m.step(t)
	}
	if err := m.writer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.store.set(nil)
	seen := texts(t, m.repo, nil, time.Time{})
	for name, s := range m.scripts {
		if seen[name] != len(s.frames) {
			t.Errorf("of %s a reader sees %d of %d", name, seen[name], len(s.frames))
		}
	}
	for _, w := range m.zombies {
		kill(w)
	}
}

// model is a machine, and what must be of it in the store.
type model struct {
	rng, faults *rand.Rand
	store       *flaky
	repo        *Repository
	writer      *Writer
	scripts     map[string]*script
	late        *script   // what the writer gets once another one has taken over
	zombies     []*Writer // that were replaced while they lived
}

func (m *model) step(t *testing.T) {
	switch m.rng.IntN(14) {
	case 0:
		kill(m.writer)
		m.start(t)
	case 1:
		old, late := m.writer, m.late
		m.start(t)
		late.add(old, 100)
		m.zombies = append(m.zombies, old)
	case 2:
		checkpoint(t, m.writer, []Entry{{Name: "state", Data: []byte("x")}})
	case 3:
		flush(t, m.writer)
	default:
		time.Sleep(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
	}
}

// start is a start of the machine, or of another one in its place.
func (m *model) start(t *testing.T) {
	m.store.set(nil)
	acknowledged := map[string]int{}
	for name, s := range m.scripts {
		acknowledged[name] = s.acknowledged()
	}
	h := claim(t, m.repo, "m", true)
	seen := texts(t, m.repo, nil, time.Time{})
	if _, ok := seen["late"]; ok {
		t.Fatal("a reader sees what was written after a takeover")
	}
	m.late = &script{owner: "late"}
	sources := []Source{m.late}
	for name, s := range m.scripts {
		if seen[name] < acknowledged[name] || seen[name] > len(s.frames) {
			t.Fatalf("of %s %d frames are acknowledged, a reader sees %d of %d", name, acknowledged[name], seen[name], len(s.frames))
		}
		next := &script{owner: name, frames: slices.Clone(s.frames), read: seen[name], stored: seen[name]}
		m.scripts[name] = next
		sources = append(sources, &offset{next, seen[name]})
	}
	m.store.set(func(int, string, string) fault {
		switch n := m.faults.IntN(100); {
		case n < 15:
			return fails
		case n < 30:
			return loses
		}
		return none
	})
	m.writer = open(t, h, Options{MaxBackOff: 5 * time.Second}, sources...)
}

// offset is a script that begins at a frame.
type offset struct {
	*script
	n int
}

func (o *offset) Stored(n uint64) { o.script.Stored(n + uint64(o.n)) }
