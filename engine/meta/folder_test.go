package meta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/engine/model"
)

// TestFolder compares the folders of random keys, a page at a time, with what
// their definition says.
func TestFolder(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error {
		return tx.Buckets().Insert(model.Bucket{ID: "bucket_1", Organization: "org_1", Project: "proj_1", Name: "b"})
	})
	keys := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.StringMatching(`[ab/0.]{1,6}`).Draw(r, "key")
		if !keys[key] {
			update(t, db, func(tx *Tx) error {
				n := len(keys)
				return tx.PutObject(model.Object{Bucket: "bucket_1", Key: key, Version: fmt.Sprint(n), Blob: fmt.Sprint("blob", n)})
			})
			keys[key] = true
		}
		prefix := rapid.SampledFrom([]string{"", "a/", "b/", "/", "a/b/", "//", "c/"}).Draw(r, "prefix")
		limit := rapid.IntRange(1, 4).Draw(r, "limit")
		var got []string
		for after, more := "", true; more; {
			view(t, db, func(tx *Tx) error {
				entries, further, err := tx.Folder("bucket_1", prefix, after, limit)
				for _, e := range entries {
					got = append(got, e.Key)
					if e.Object == nil != strings.HasSuffix(e.Key, "/") && e.Key != prefix {
						r.Errorf("%q: object %v", e.Key, e.Object)
					}
					after = e.Key
				}
				more = further
				return err
			})
		}
		if want := folderOf(keys, prefix); !slices.Equal(got, want) {
			r.Errorf("the folder %q is %q, want %q", prefix, got, want)
		}
	})
}

func folderOf(keys map[string]bool, prefix string) []string {
	found := map[string]bool{}
	for key := range keys {
		rest, in := strings.CutPrefix(key, prefix)
		if !in {
			continue
		}
		if name, _, nested := strings.Cut(rest, "/"); nested {
			found[prefix+name+"/"] = true
		} else {
			found[key] = true
		}
	}
	var entries []string
	for entry := range found {
		entries = append(entries, entry)
	}
	slices.Sort(entries)
	return entries
}
