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
			if got := liveBlobs(tx); !slices.Equal(got, live) {
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

// liveBlobs returns the blobs that records refer to.
func liveBlobs(tx *Tx) (refs []string) {
	_ = tx.bolt.Bucket([]byte(liveBlobsBucket)).ForEach(func(ref, _ []byte) error { refs = append(refs, string(ref)); return nil })
	return refs
}
