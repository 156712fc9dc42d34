package meta

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// TestPartitionsMatchTheModel compares an index of small partitions with a map.
func TestPartitionsMatchTheModel(t *testing.T) {
	t.Parallel()
	bolt, err := bbolt.Open(filepath.Join(t.TempDir(), "partitions.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	rapid.Check(t, func(t *rapid.T) {
		tx, err := bolt.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		m := newEraModel(t, boltTx{tx: tx})
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "add many": m.addMany, "set the clock": m.setClock, "remove": m.remove, "remove many": m.removeMany,
			"newest": m.newest, "oldest": m.oldest,
			"keep":  func(*rapid.T) { m.x.keeping = true },
			"flush": m.flush,
			"": func(t *rapid.T) {
				if m.x.keeping {
					return
				}
				if err := checkPartitions(m.x); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

type partitionModel struct {
	x     *timePartitions
	clock int
	keys  map[string]string // by version
}

func newEraModel(t *rapid.T, tx boltTx) *partitionModel {
	starts, err1 := tx.CreateBucketIfNotExists([]byte("starts"))
	members, err2 := tx.CreateBucketIfNotExists([]byte("members"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return &partitionModel{&timePartitions{starts: starts, members: members, size: 16}, 500, map[string]string{}}
}

func (m *partitionModel) flush(t *rapid.T) {
	if err := m.x.flush(); err != nil {
		t.Fatal(err)
	}
	m.x.keeping = false
}

func eraVersion(n int) string { return fmt.Sprintf("%026d", n) }

func (m *partitionModel) add(t *rapid.T) {
	for m.keys[eraVersion(m.clock)] != "" {
		m.clock++
	}
	version := eraVersion(m.clock)
	key := rapid.SampledFrom([]string{"a", "a/", "b/"}).Draw(t, "folder") + fmt.Sprint(m.clock)
	m.keys[version] = key
	if err := m.x.add([]byte(version), []byte(key)); err != nil {
		t.Fatal(err)
	}
}

func (m *partitionModel) setClock(t *rapid.T) { m.clock = rapid.IntRange(0, 999).Draw(t, "clock") }

func (m *partitionModel) draw(t *rapid.T) string {
	if len(m.keys) == 0 {
		t.Skip("nothing is there")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.keys))).Draw(t, "version")
}

func (m *partitionModel) remove(t *rapid.T) { m.drop(t, m.draw(t)) }

// addMany fills several partitions.
func (m *partitionModel) addMany(t *rapid.T) {
	for range 100 {
		m.add(t)
	}
}

// removeMany leaves few members in many partitions, removing from either end.
func (m *partitionModel) removeMany(t *rapid.T) {
	all := slices.Sorted(maps.Keys(m.keys))
	if rapid.Bool().Draw(t, "newest first") {
		slices.Reverse(all)
	}
	for i, version := range all {
		if i%8 > 0 {
			m.drop(t, version)
		}
	}
}

func (m *partitionModel) drop(t *rapid.T, version string) {
	for range 2 { // the second time it is gone already
		if err := m.x.remove([]byte(version), []byte(m.keys[version])); err != nil {
			t.Fatal(err)
		}
	}
	delete(m.keys, version)
}

func (m *partitionModel) newest(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"", "a", "a/", "b/", "c"}).Draw(t, "prefix")
	var before []byte
	if rapid.Bool().Draw(t, "from within") {
		before = []byte(eraVersion(rapid.IntRange(0, 999).Draw(t, "before")))
	}
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	m.compare(t, m.x.newest([]byte(prefix), before, limit), limit, func(a, b string) int { return cmp.Compare(b, a) }, func(version string) bool {
		return strings.HasPrefix(m.keys[version], prefix) && (before == nil || version < string(before))
	})
}

func (m *partitionModel) oldest(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"", "a", "a/", "b/", "c"}).Draw(t, "prefix")
	before := eraVersion(rapid.IntRange(0, 999).Draw(t, "before"))
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	m.compare(t, m.x.oldest([]byte(prefix), []byte(before), limit), limit, cmp.Compare[string], func(version string) bool {
		return strings.HasPrefix(m.keys[version], prefix) && version < before
	})
}

func (m *partitionModel) compare(t *rapid.T, found []member, limit int, order func(a, b string) int, wanted func(version string) bool) {
	var want, got []string
	for _, version := range slices.SortedFunc(maps.Keys(m.keys), order) {
		if wanted(version) && len(want) < limit {
			want = append(want, version+" "+m.keys[version])
		}
	}
	for _, f := range found {
		got = append(got, string(f.version)+" "+string(f.key))
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

// checkPartitions verifies that each member is in its partition, that the counts are
// right, and that no partition is empty, too full, or small next to a small one.
func checkPartitions(x *timePartitions) error {
	var errs []error
	found, before := 0, x.size
	err := x.starts.ForEach(func(partition, data []byte) error {
		members := x.find(nil, partition, nil, nil)
		for _, m := range members {
			if of, _ := x.of(m.version); !bytes.Equal(of, partition) {
				errs = append(errs, fmt.Errorf("%s %q is in the partition %s, not %s", m.version, m.key, partition, of))
			}
		}
		n := partitionCount(data)
		if n != len(members) || n < 1 || n > x.size {
			errs = append(errs, fmt.Errorf("the partition %s counts %d and has %d", partition, n, len(members)))
		}
		if before+n < x.size/4 {
			errs = append(errs, fmt.Errorf("the partition %s has %d, and the one before it %d", partition, n, before))
		}
		found, before = found+len(members), n
		return nil
	})
	if total := countKeys(x.members); found != total {
		errs = append(errs, fmt.Errorf("%d members are in partitions, of %d", found, total))
	}
	return errors.Join(append(errs, err)...)
}
