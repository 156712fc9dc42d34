package meta

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/engine/model"
)

// TestARebuiltFileIsTheSame changes a store at random while its chunks are read, one after
// the other, and rebuilds it from them and from what was captured meanwhile and before.
func TestARebuiltFileIsTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		db, err := Open(filepath.Join(dir, fmt.Sprint(run)))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.bolt.NoSync = true // only the stored content matters here
		c, err := db.Capture(CaptureOptions{Limit: 16 << 20, Now: time.Now, Wake: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		m := &copyModel{objectModel: objectModel{db: db, buckets: map[string]map[string]model.Object{}}, capture: c}
		c.Resume()
		defer m.end()
		t.Repeat(map[string]func(*rapid.T){
			"make": m.make, "put": m.put, "put again": m.put, "delete": m.delete, "drop": m.drop, "trash bucket": m.trashBucket, "unlink": m.unlink, "move": m.move, "trash": m.trash,
			"audit": m.audit, "sample": m.sample, "drop samples": m.dropSamples, "fail": m.fail, "chunk": m.chunk, "chunk again": m.chunk,
			"": func(*rapid.T) {},
		})
		for len(m.whole) == 0 {
			m.chunk(t)
		}
		m.compareCopy(t, filepath.Join(dir, fmt.Sprint(run, " rebuilt")))
	})
}

// copyModel is an objectModel whose store is being copied.
type copyModel struct {
	objectModel
	capture *Capture
	entries int64

	next  func() ([]byte, error, bool)
	stop  func()
	read  [][]byte // the chunks that were read until now
	whole [][]byte // those of the newest walk that reached its end
	from  int      // index in redo of what is needed after them, about
	begun int      // the same of the walk under way
	redo  []Redo
}

func (m *copyModel) end() {
	if m.stop != nil {
		m.stop()
	}
	m.capture.Close()
}

func (m *copyModel) audit(t *rapid.T) {
	m.entries++
	entry := auditEntry(m.entries)
	entry.Organization = rapid.SampledFrom([]string{"", "org_1"}).Draw(t, "organization")
	m.change(t, nil, func(tx *Tx) error { return tx.AppendAudit(testChain(5), &entry) })
}

func (m *copyModel) sample(t *rapid.T) {
	at := time.Unix(rapid.Int64Range(0, 20).Draw(t, "time"), 0)
	m.change(t, nil, func(tx *Tx) error {
		return tx.PutSample("db_1", model.Series{Name: "s", Step: time.Second, Keep: 5}, model.Sample{At: at})
	})
}

func (m *copyModel) dropSamples(t *rapid.T) {
	m.change(t, nil, func(tx *Tx) error { return tx.DropSamples("db_1") })
}

func (m *copyModel) fail(t *rapid.T) {
	failed := errors.New("no")
	m.change(t, failed, func(tx *Tx) error {
		entry := auditEntry(m.entries + 1)
		return errors.Join(tx.AppendAudit(testChain(5), &entry), set("failed", "1")(tx), tx.DropSamples("db_1"), failed)
	})
}

// chunk reads the next chunk.
func (m *copyModel) chunk(t *rapid.T) {
	m.redo = append(m.redo, m.capture.Next(1<<30, time.Time{})...)
	if m.next == nil {
		m.begun = len(m.redo)
		m.next, m.stop = iter.Pull2(m.db.chunks(chunkSizes{64, 200, 2000}))
	}
	chunk, err, ok := m.next()
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		m.read = append(m.read, bytes.Clone(chunk))
		return
	}
	m.whole, m.from = m.read, m.begun
	m.next, m.read = nil, nil
}

func (m *copyModel) compareCopy(t *rapid.T, path string) {
	m.redo = append(m.redo, m.capture.Next(1<<30, time.Time{})...)
	from := rapid.IntRange(0, m.from).Draw(t, "from")
	if err := rebuild(path, m.whole, m.redo[from:]); err != nil {
		t.Fatal(err)
	}
	rebuilt, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rebuilt.Close()
	if got, want := dump(t, rebuilt), dump(t, m.db); got != want {
		t.Fatalf("the copy has\n%s\nof\n%s", got, want)
	}
	if err := check(rebuilt); err != nil {
		t.Fatal(err)
	}
}

func rebuild(path string, chunks [][]byte, redo []Redo) error {
	b, err := NewBuilder(path)
	if err != nil {
		return err
	}
	for _, chunk := range chunks {
		if err := b.Load(chunk); err != nil {
			return errors.Join(err, b.Discard())
		}
	}
	for _, r := range redo {
		if err := b.Apply(r.Changes); err != nil {
			return errors.Join(err, b.Discard())
		}
	}
	return b.Finish()
}

func allChunks(t testing.TB, db *DB) (chunks [][]byte) {
	t.Helper()
	for chunk, err := range db.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, bytes.Clone(chunk))
	}
	return chunks
}

// TestCopyUnderLoad copies a store of several chunks while writers change it at once.
func TestCopyUnderLoad(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	db.bolt.NoSync = true
	update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	fill(t, db, "bucket_1", 1, 20_000)
	c := capture(t, db, 1<<30)
	done := make(chan struct{})
	var writers, began sync.WaitGroup
	for w := range 4 {
		began.Add(1)
		writers.Go(func() {
			began := sync.OnceFunc(began.Done)
			defer began()
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				n := 100_000*(w+1) + i
				o := object("bucket_1", fmt.Sprintf("key/%06d", i*7919%25_000), n)
				entry := auditEntry(int64(n))
				if err := db.Update(func(tx *Tx) error { return errors.Join(putOne(tx, o), tx.AppendAudit(testChain(100), &entry)) }); err != nil {
					t.Error(err)
					return
				}
				began()
			}
		})
	}
	began.Wait()
	chunks := allChunks(t, db)
	c.Barrier()
	close(done)
	writers.Wait()
	redo := c.Next(1<<30, time.Time{})
	if len(chunks) < 3 || len(redo) < 3 || c.Status().Paused {
		t.Fatalf("%d chunks and %d transactions: nothing is tested; %+v", len(chunks), len(redo), c.Status())
	}
	path := filepath.Join(t.TempDir(), "rebuilt.db")
	if err := rebuild(path, chunks, redo); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, openChecked(t, path)), dump(t, db); got != want {
		t.Errorf("the copy differs: %d bytes of %d", len(got), len(want))
	}
}

// TestAChangeChangesFewChunks counts the chunks that a change at each place of a store
// leaves different.
func TestAChangeChangesFewChunks(t *testing.T) {
	t.Parallel()
	db, err := Open(filepath.Join(t.TempDir(), "meta.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.bolt.NoSync = true
	update(t, db, func(tx *Tx) error { return tx.Buckets().Insert(bucket("bucket_1")) })
	fill(t, db, "bucket_1", 1, 20_000)
	before := allChunks(t, db)
	if len(before) < 5 || len(before) > 40 {
		t.Fatalf("%d chunks", len(before))
	}
	for i, chunk := range before {
		if size := normalChunks(); len(chunk) > size.most+1<<10 || len(chunk) < size.least && i < len(before)-1 {
			t.Errorf("chunk %d has %d bytes", i, len(chunk))
		}
	}
	for _, name := range []string{"a", "key/000000", "key/010000", "key/019999", "key/0100005", "z"} {
		update(t, db, func(tx *Tx) error {
			keys, _ := tx.objectBuckets("bucket_1")
			return keys.Put([]byte(name), make([]byte, 700))
		})
		after := allChunks(t, db)
		changed := 0
		for _, chunk := range after {
			if !slices.ContainsFunc(before, func(b []byte) bool { return bytes.Equal(b, chunk) }) {
				changed++
			}
		}
		if changed == 0 || changed > 2 {
			t.Errorf("%s: %d of %d chunks are different", name, changed, len(after))
		}
		before = after
	}
}

// TestARebuildRefuses what no appliance has written.
func TestARebuildRefuses(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	chunk := allChunks(t, db)[0]
	newer := slices.Clone(chunk)
	at := strings.Index(string(newer), "version\x04")
	newer[at+len("version\x04")+3] = Format + 1
	path := filepath.Join(t.TempDir(), "rebuilt.db")
	var later *NewerFormatError
	if err := rebuild(path, [][]byte{newer}, nil); !errors.As(err, &later) {
		t.Errorf("a later format: %v", err)
	}
	if err := rebuild(path, nil, nil); !isDamaged(err) {
		t.Errorf("nothing: %v", err)
	}
	for _, damaged := range [][]byte{{}, chunk[:3], chunk[:len(chunk)-3], append(slices.Clone(chunk), 9), []byte("HFMC\x01\x01\x01a\x00"), []byte("HFMC\x02")} {
		if err := rebuild(path, [][]byte{damaged}, nil); !isDamaged(err) {
			t.Errorf("a chunk of %d bytes: %v", len(damaged), err)
		}
	}
	for _, c := range []Change{{Key: []byte("a")}, {Bucket: []string{"a"}, Value: []byte("short")}} {
		if err := rebuild(path, [][]byte{chunk}, []Redo{{Changes: []Change{c}}}); !isDamaged(err) {
			t.Errorf("the change %v: %v", c, err)
		}
	}
	if err := rebuild(path, [][]byte{chunk}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, openChecked(t, path)), dump(t, db); got != want {
		t.Errorf("the copy has\n%s\nof\n%s", got, want)
	}
}

func FuzzReadChunk(f *testing.F) {
	f.Add([]byte("HFMC\x01\x00\x01\x01a\x01\x01k\x01v\x02\x00\x00\x00\x00\x00\x00\x00\x07"))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		_ = readChunk(chunk, func(c Change) error {
			if len(c.Bucket) == 0 || len(c.Key) == 0 && len(c.Value) != 8 {
				t.Errorf("the change %+v", c)
			}
			return nil
		})
	})
}
