package engine

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
)

// What keeps an object from being read for a while says nothing about its bytes,
// and one that is read whole later on is not damaged.
func TestDamageThatPasses(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "passing")
	for _, test := range []struct {
		err   error
		named int
	}{{syscall.EMFILE, 0}, {syscall.ENOMEM, 0}, {syscall.EIO, 1}, {blobstore.ErrNotFound, 1}, {blobstore.ErrDamaged, 1}} {
		s.mustPut(t, bucket, "k", text(3000))
		object, err := s.Objects.Object(bucket, "k")
		if err != nil {
			t.Fatal(err)
		}
		s.Objects.Unreadable(object, fmt.Errorf("read blob: %w", test.err))
		if found, err := s.damageAdvice(); err != nil || len(found) != test.named {
			t.Errorf("%v: advice %+v, %v", test.err, found, err)
		}
		if err := s.Objects.ScrubOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, err := s.damageAdvice(); err != nil || len(found) != 0 {
			t.Errorf("%v, and then it was read whole: advice %+v, %v", test.err, found, err)
		}
	}
}

// Whoever asks for an object that is known as damaged, however often, waits for no
// transaction.
func TestKnownDamageIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	s := openObjects(t)
	bucket := s.bucket(t, "known")
	s.mustPut(t, bucket, "k", text(3000))
	object, err := s.Objects.Object(bucket, "k")
	if err != nil {
		t.Fatal(err)
	}
	s.Objects.Unreadable(object, blobstore.ErrDamaged)
	told := make(chan struct{})
	err = s.Core.Meta.Update(func(*meta.Tx) error {
		go func() {
			defer close(told)
			s.Objects.Unreadable(object, blobstore.ErrDamaged)
		}()
		select {
		case <-told:
			return nil
		case <-time.After(10 * time.Second):
			return fmt.Errorf("it waits for the transaction")
		}
	})
	if err != nil {
		t.Error(err)
	}
	<-told
}
