package blobstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
)

// Secure makes the bytes of a large blob durable before Publish, which takes most of the time, and returns its Ref,
// so that the note can contain it. For a small blob it does nothing and returns "". After an error the blob does not
// exist.
func (w *Writer) Secure() (Ref, error) {
	if w.err != nil || !w.large || w.secured != "" {
		return w.secured, w.err
	}
	ref, err := w.commit()
	if err != nil {
		return "", w.abandon(err)
	}
	w.secured = ref
	return ref, nil
}

// Publish makes the blob and its note durable together, delivers both with value, and returns the blob's Ref. A
// small blob takes one sync, shared with other callers, and is replayed with its note. After an error the blob does
// not exist, unless that made the store read-only: then the next Open may deliver the note, with the blob.
func (w *Writer) Publish(note []byte, value any) (Ref, error) {
	if _, err := w.Secure(); err != nil {
		return "", err
	}
	r := &record{note: note, value: value}
	if w.secured == "" {
		r.blob, r.hasBlob, r.crc = w.small, true, w.CRC32C()
	} else if t := w.store.tap.Load(); t != nil {
		t.publish(w.secured, w.size)
	}
	err := w.store.log(w.ctx, r)
	if errors.Is(err, errUncertain) {
		w.forget()
		w.err = err // the file stays for the note
		return "", err
	}
	if err != nil {
		return "", w.abandon(err)
	}
	ref := w.secured
	if r.hasBlob {
		ref = journalRef(r.position)
	}
	w.end()
	return ref, nil
}

// Log makes a note without a blob durable and delivers it. After an error it is not delivered, unless that made the store
// read-only: then the next Open may deliver it.
func (s *Store) Log(ctx context.Context, note []byte, value any) error {
	return s.log(ctx, &record{note: note, value: value})
}

// Copy is a blob of the journal to be appended again.
type Copy struct {
	Note []byte
	Blob []byte
}

// Copy appends blobs of the journal again, each with its note, so that their old segments can be dropped.
func (s *Store) Copy(ctx context.Context, copies []Copy) error {
	records := make([]*record, len(copies))
	for i, c := range copies {
		records[i] = &record{note: c.Note, blob: c.Blob, hasBlob: true, crc: crc32.Checksum(c.Blob, castagnoli)}
	}
	return s.log(ctx, records...)
}

func (s *Store) log(ctx context.Context, records ...*record) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("publish blob: %w", err)
	}
	defer s.life.RUnlock()
	if err := s.writable(); err != nil {
		return err
	}
	return s.journal.append(records...)
}
