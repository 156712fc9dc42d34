package blobstore

import (
	"context"
	"errors"
	"fmt"
)

// verifyStep is how many bytes NoneAway reads at a time.
const verifyStep = 1 << 20

// NoneAway forgets what can be fetched, and reports whether it did: only if all of it is on this disk, whole, and no list is
// damaged. To find out it reads all of it, and calls pace before it reads n bytes, at most 1 MiB. It returns ErrDamaged for the
// first file that is damaged here, which Fetch then brings.
func (s *Store) NoneAway(ctx context.Context, pace func(ctx context.Context, n int) error) (bool, error) {
	none := func(whole func(a Away) (bool, error)) (bool, error) {
		for a, err := range s.away.each() {
			if isDamage(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			if ok, err := whole(a); !ok {
				return false, err
			}
		}
		return true, nil
	}
	if ok, err := none(func(a Away) (bool, error) { return s.verifyListed(ctx, a.Ref, pace) }); !ok {
		return false, err
	}
	s.evicting.Lock()
	defer s.evicting.Unlock()
	if ok, err := none(func(a Away) (bool, error) { return s.fetches.intact(a.Ref), nil }); !ok {
		return false, err
	}
	files, bytes := s.Absent()
	s.absent.add(-files, -bytes)
	return true, s.away.clear()
}

// verifyListed reports whether a listed file is on this disk, whole. It lets one be fetched that is damaged.
func (s *Store) verifyListed(ctx context.Context, ref Ref, pace func(ctx context.Context, n int) error) (bool, error) {
	if !s.fetches.intact(ref) {
		return false, nil
	}
	r, err := s.openFile(ref)
	if err == nil {
		defer r.Close()
		for off := int64(0); err == nil && off < r.Size(); off += verifyStep {
			n := min(verifyStep, r.Size()-off)
			if err := pace(ctx, int(n)); err != nil {
				return false, err
			}
			err = r.Verify(off, n)
		}
	}
	if errors.Is(err, ErrNotFound) { // it has left meanwhile
		return false, nil
	}
	if isDamage(err) && s.ReadCopy(ref) {
		return false, fmt.Errorf("%w: blob %s, which can be fetched: %w", ErrDamaged, ref, err)
	}
	return err == nil, err
}
