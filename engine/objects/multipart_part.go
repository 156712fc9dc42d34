package objects

import (
	"context"
	"errors"
	"io"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/ctxio"
)

// PartUpload is a part of a multipart upload to store.
type PartUpload struct {
	Bucket, Key, Multipart string
	Number                 int
	Body                   io.Reader
	// Length is the number of bytes of Body, -1 if that is unknown.
	Length int64
	// Describe sets the MD5 and the checksum of the part once Body was read to its end.
	Describe func(*model.MultipartPart)
}

// copyBuffer is the size of the pieces in which parts are written, in bytes.
const copyBuffer = 256 << 10

// MultipartPut stores a part, in place of an earlier one with its number. When MultipartPut returns nil, the part is
// complete and durable.
func (s *Service) MultipartPut(ctx context.Context, call *model.Call, in PartUpload) (model.MultipartPart, error) {
	if in.Number < 1 || in.Number > MaxParts {
		return model.MultipartPart{}, model.Invalid("partNumber", "must be from 1 to %d", MaxParts)
	}
	if in.Length > s.core.Config.MaxObjectBytes {
		return model.MultipartPart{}, tooLarge(s.core.Config.MaxObjectBytes)
	}
	if _, err := s.MultipartGet(call, in.Bucket, in.Key, in.Multipart); err != nil {
		return model.MultipartPart{}, err
	}
	if err := s.space.refuse(max(in.Length, 0)); err != nil {
		return model.MultipartPart{}, err
	}
	release, err := s.reserveTotals(ctx, call, false, model.Totals{UploadBytes: max(in.Length, 0)})
	if err != nil {
		return model.MultipartPart{}, err
	}
	defer release()
	place, err := s.placePart(ctx, call, in)
	if err != nil {
		return model.MultipartPart{}, err
	}
	defer place.release()
	p, err := s.writePart(ctx, in, place)
	if err != nil {
		return p, errors.Join(err, s.discardPart(in, place))
	}
	p.Organization = call.Organization
	replaced, uncertain, err := s.recordPart(call, p, place)
	if err != nil && !uncertain {
		err = errors.Join(err, s.discardPart(in, place))
	}
	if err != nil {
		return p, err
	}
	if replaced != "" {
		return p, s.removeParts([]string{replaced})
	}
	return p, nil
}

// writePart makes the bytes of a part durable at its place.
func (s *Service) writePart(ctx context.Context, in PartUpload, place place) (p model.MultipartPart, err error) {
	limit := in.Length
	if limit < 0 {
		limit = s.core.Config.MaxObjectBytes
	}
	part, err := s.core.Blobs.OpenSection(place.ref, place.start, limit)
	if err != nil {
		return p, storeError(err)
	}
	defer part.Close()
	// A part that is copied from another object has no connection that ends.
	body := s.space.withinReserve(ctxio.NewReader(ctx, in.Body), in.Length < 0)
	size, err := io.CopyBuffer(struct{ io.Writer }{part}, body, make([]byte, copyBuffer))
	switch {
	case errors.Is(err, blobstore.ErrSectionEnd) && in.Length < 0:
		return p, tooLarge(limit)
	case errors.Is(err, blobstore.ErrSectionEnd):
		return p, model.Invalid("body", "goes beyond its announced length of %d bytes", in.Length)
	case err != nil:
		return p, uploadError(err)
	case in.Length >= 0 && size != in.Length:
		return p, model.Invalid("body", "ended after %d of %d bytes", size, in.Length)
	}
	size, crc, err := part.Sync()
	if err != nil {
		return p, storeError(err)
	}
	p = model.MultipartPart{
		Multipart: in.Multipart, Number: in.Number, Part: place.ref, Start: place.start, SizeBytes: size, CRC32C: crc, Blocks: part.Blocks(), At: s.core.Clock(),
	}
	in.Describe(&p)
	return p, nil
}

// recordPart commits a part, unless the caller's authority has ended. It returns the reference to the bytes of the one that it
// replaces if these go with it, "" otherwise. Those in the joint stay, because a completion or a copy of the data directory may
// need them, and count. uncertain, with an error, means that the next start may find the record, so that it needs the bytes: only
// the commit failed. A full disk refuses a commit before its last write.
func (s *Service) recordPart(call *model.Call, p model.MultipartPart, place place) (replaced string, uncertain bool, err error) {
	id := meta.MultipartPartID(p.Multipart, p.Number)
	written := false
	record := func(tx *meta.Tx) (err error) {
		defer func() { written = err == nil }()
		old, err := tx.MultipartParts().Get(id)
		if err == nil {
			err = tx.MultipartParts().Delete(id)
		}
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		replaced = old.Part
		err = tx.Multiparts().Change(p.Multipart, func(m *model.Multipart) {
			m.ExpiresAt = s.core.Extended(m.ExpiresAt, MultipartLife)
			if place.joint {
				m.PlacedBytes += p.SizeBytes
			}
			if old.Part == m.Joint {
				replaced = ""
				m.ReplacedBytes += old.SizeBytes
			}
		})
		if errors.Is(err, meta.ErrNotFound) {
			return noMultipart(p.Multipart)
		}
		if err != nil {
			return err
		}
		return tx.MultipartParts().Insert(p)
	}
	err = s.core.WithAuthority(call, func() error { return s.core.Change(call, record) })
	return replaced, written && err != nil && !core.IsDiskFull(err), err
}

// checkUploadLimit refuses another unfinished upload of an organization that has too many.
func checkUploadLimit(tx *meta.Tx, organization string) error {
	totals, err := tx.Totals(organization)
	if err != nil {
		return err
	}
	if totals.Uploads >= MaxUploads {
		return model.Errorf(model.CodeConflict, "%d uploads are under way: complete some, or abort them", MaxUploads)
	}
	return nil
}
