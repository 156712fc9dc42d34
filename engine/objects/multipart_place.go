package objects

import (
	"context"
	"errors"
	"sync"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Parts of the usual uploads are all of one size but the last. They are written at their place in one file, the joint,
// which becomes the object as it is. A part goes to a file of its own if it does not fit in its place, or if its place
// holds, or may come to hold, the bytes of another one with its number. Then completing the upload copies the parts into
// a new file.

// maxGap is the number of bytes that may be missing before a part in the joint: a file with large gaps costs those who
// copy the data directory.
const maxGap = 256 << 20

// place is where the bytes of a part are written.
type place struct {
	ref     string // in package blobstore
	start   int64  // there
	joint   bool   // it is the upload's joint
	release func() // ends the writing
}

// placePart returns the place for a part. The caller releases it.
func (s *Service) placePart(ctx context.Context, call *model.Call, in PartUpload) (place, error) {
	p, err := s.placeInJoint(ctx, call, in)
	if err != nil || p.joint {
		return p, err
	}
	id, err := s.core.Blobs.CreatePart(ctx)
	return place{ref: id, release: func() {}}, storeError(err)
}

// placeInJoint returns the place for a part in the joint, zero if it must not be written there.
func (s *Service) placeInJoint(ctx context.Context, call *model.Call, in PartUpload) (p place, err error) {
	others, release, ok := s.places.take(in.Multipart, in.Number, in.Length)
	if !ok {
		return p, nil
	}
	defer func() {
		if !p.joint {
			release()
		}
	}()
	m, err := s.MultipartGet(call, in.Bucket, in.Key, in.Multipart) // again: it may have ended before the place was taken
	if err == nil && m.Joint == "" && in.Length >= MinPartBytes {
		m, err = s.beginJoint(ctx, m, in.Length)
	}
	if err != nil || m.Joint == "" {
		return p, err
	}
	start := int64(in.Number-1) * m.PlaceBytes
	if in.Length < 1 || in.Length > m.PlaceBytes || start > m.PlacedBytes+others+maxGap || start+in.Length > s.core.Config.MaxObjectBytes {
		return p, nil
	}
	if exists, err := s.partExists(in); err != nil || exists {
		return p, err
	}
	return place{ref: m.Joint, start: start, joint: true, release: release}, nil
}

// beginJoint gives an upload its joint, unless it has one.
func (s *Service) beginJoint(ctx context.Context, m model.Multipart, size int64) (model.Multipart, error) {
	id, err := s.core.Blobs.CreatePart(ctx)
	if err != nil {
		return m, storeError(err)
	}
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Multiparts().Change(m.ID, func(stored *model.Multipart) {
			if stored.Joint == "" {
				stored.Joint, stored.PlaceBytes = id, size
			}
			m = *stored
		})
	})
	if errors.Is(err, meta.ErrNotFound) {
		err = noMultipart(m.ID)
	}
	if m.Joint != id || err != nil && core.IsDiskFull(err) { // after another error of the commit, the next start may find the joint
		err = errors.Join(err, s.core.Blobs.RemovePart(id))
	}
	return m, err
}

func (s *Service) partExists(in PartUpload) (exists bool, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		_, err := tx.MultipartParts().Get(meta.MultipartPartID(in.Multipart, in.Number))
		exists = err == nil
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		return err
	})
	return exists, err
}

// discardPart frees the disk space of a part that was not recorded.
func (s *Service) discardPart(in PartUpload, p place) error {
	if !p.joint {
		return s.core.Blobs.RemovePart(p.ref)
	}
	err := s.core.Blobs.DiscardSection(p.ref, p.start, in.Length)
	if errors.Is(err, errors.ErrUnsupported) { // no more space is lost than that of the parts under way
		s.places.end()
		return nil
	}
	return err
}

// inPlace returns whether the parts, in the order of their numbers, are the object in the joint of their upload, and all
// that it holds.
func inPlace(m model.Multipart, all, parts []model.MultipartPart) bool {
	if m.Joint == "" {
		return false
	}
	next := int64(0)
	for _, p := range parts {
		if p.Part != m.Joint || p.Start != next {
			return false
		}
		next += p.SizeBytes
	}
	placed := 0
	for _, p := range all {
		if p.Part == m.Joint {
			placed++
		}
	}
	return placed == len(parts)
}

// places keeps those who write parts into joints apart: from each other, and from a completion that makes the joint the
// object.
type places struct {
	mu      sync.Mutex
	uploads map[string]map[int]int64 // the sizes in bytes of the parts being written, by upload and number
	closed  map[string]bool          // the uploads whose joints nothing may be written into
	off     bool                     // nothing is written into joints any more
}

func newPlaces() *places {
	return &places{uploads: map[string]map[int]int64{}, closed: map[string]bool{}}
}

// take takes the place of a part of size bytes, and returns the number of bytes that are being written at others.
func (p *places) take(upload string, number int, size int64) (others int64, release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.uploads[upload][number]; taken || p.off || p.closed[upload] {
		return 0, nil, false
	}
	for _, size := range p.uploads[upload] {
		others += max(size, 0)
	}
	if p.uploads[upload] == nil {
		p.uploads[upload] = map[int]int64{}
	}
	p.uploads[upload][number] = size
	return others, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if delete(p.uploads[upload], number); len(p.uploads[upload]) == 0 {
			delete(p.uploads, upload)
		}
	}, true
}

// close lets no more be written into the joint of an upload until open is called. alone reports that nothing is being
// written there.
func (p *places) close(upload string) (open func(), alone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed[upload] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.closed, upload)
	}, len(p.uploads[upload]) == 0
}

// end lets nothing more be written into joints.
func (p *places) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
}
