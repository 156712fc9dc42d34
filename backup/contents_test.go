package backup

import (
	"strings"
	"testing"
)

func TestTake(t *testing.T) {
	for name, test := range map[string]struct {
		file fileSum
		want string
	}{
		"a":       {fileSum{1, 2}, ""},
		"missing": {fileSum{1, 2}, "only one of"},
		"size":    {fileSum{2, 2}, "2 by the other"},
		"damaged": {fileSum{1, 3}, "another checksum"},
	} {
		files := contents{"a": {1, 2}, "size": {1, 2}, "damaged": {1, 2}}
		err := files.take(name, test.file)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyWAL(t *testing.T) {
	files := contents{"pg_wal/000000010000000000000002": {}, "pg_wal/archive_status/x": {}}
	if err := files.onlyWAL(); err != nil {
		t.Error(err)
	}
	files["pg_walnut"], files["base/1"] = fileSum{}, fileSum{}
	if err := files.onlyWAL(); err == nil || !strings.Contains(err.Error(), "2 files") || !strings.Contains(err.Error(), "base/1") {
		t.Error(err)
	}
}
