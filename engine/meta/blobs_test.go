package meta

import (
	"errors"
	"slices"
	"testing"
)

func TestBlobRows(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	step := func(change func(*Tx) error, live, discarded []string) {
		t.Helper()
		update(t, db, change)
		view(t, db, func(tx *Tx) error {
			if got := tx.LiveBlobs("", 10); !slices.Equal(got, live) {
				t.Errorf("live are %v, want %v", got, live)
			}
			if got := tx.DiscardedBlobs(10); !slices.Equal(got, discarded) {
				t.Errorf("discarded are %v, want %v", got, discarded)
			}
			for _, ref := range []string{"a", "b", "c", "d"} {
				if known := slices.Contains(live, ref) || slices.Contains(discarded, ref); tx.BlobKnown(ref) != known {
					t.Errorf("%s is known: %v", ref, !known)
				}
			}
			return nil
		})
	}
	step(func(tx *Tx) error { return errors.Join(tx.ClaimBlob("b"), tx.ClaimBlob("a"), tx.ClaimBlob("c")) }, []string{"a", "b", "c"}, nil)
	step(func(tx *Tx) error { return tx.DiscardBlob("b") }, []string{"a", "c"}, []string{"b"})
	step(func(tx *Tx) error { return errors.Join(tx.DiscardBlob("c"), tx.ClaimBlob("c")) }, []string{"a", "c"}, []string{"b"})
	step(func(tx *Tx) error { return tx.ForgetBlobs([]string{"b", "never there"}) }, []string{"a", "c"}, nil)
	step(func(tx *Tx) error {
		return errors.Join(tx.DiscardBlob("a"), tx.DiscardBlob("c"), tx.ForgetBlobs([]string{"a", "c"}))
	}, nil, nil)
}

func TestLiveBlobsPages(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	all := []string{"a", "a\x00", "ab", "b", "c\xff"}
	update(t, db, func(tx *Tx) error {
		var err error
		for _, ref := range all {
			err = errors.Join(err, tx.ClaimBlob(ref))
		}
		return err
	})
	view(t, db, func(tx *Tx) error {
		for limit := 1; limit <= len(all)+1; limit++ {
			var got []string
			for after := ""; ; after = got[len(got)-1] {
				page := tx.LiveBlobs(after, limit)
				if len(page) > limit {
					t.Errorf("a page of %d has %d", limit, len(page))
				}
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
			}
			if !slices.Equal(got, all) {
				t.Errorf("by %d: %q", limit, got)
			}
		}
		return nil
	})
	// These blobs have no objects, which the checker would complain of.
	update(t, db, func(tx *Tx) error {
		var err error
		for _, ref := range all {
			err = errors.Join(err, tx.DiscardBlob(ref))
		}
		return err
	})
}
