package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckPages(t *testing.T) {
	c := newCluster(t)
	c.query("create table t as select n, repeat(md5(n::text), 4) as text from generate_series(1, 20000) n")
	file := c.query("select pg_relation_filepath('t')")
	c.Stop()
	pages, err := CheckPages(t.Context(), c.Dir)
	if err != nil || pages < 500 {
		t.Fatalf("%d pages, %v", pages, err)
	}
	whole, err := os.ReadFile(filepath.Join(c.Dir, file))
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"page 20": append(append(append([]byte{}, whole[:20*pageSize+5000]...), whole[20*pageSize+5000]^1), whole[20*pageSize+5001:]...),
		"page 7":  whole[:7*pageSize+1],
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, file), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := CheckPages(t.Context(), c.Dir); !errors.Is(err, ErrUnsoundPage) || !strings.Contains(err.Error(), file) || !strings.HasSuffix(err.Error(), name) {
			t.Errorf("damage in %s: %v", name, err)
		}
	}
}
