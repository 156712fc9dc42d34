package objects

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"holdfast/blobstore"
	"holdfast/engine/model"
)

// CompletedPart is a part that a client names to complete a multipart upload.
type CompletedPart struct {
	Number   int
	MD5      string // in hexadecimal
	Checksum string // in base64, "" if the client does not say
}

// Completion is what completes a multipart upload.
type Completion struct {
	Bucket, Key, Multipart string
	Parts                  []CompletedPart
	IfAbsent               bool
	IfMatch                string
	// Size is the size that the object must have, -1 for any.
	Size int64
	// Whole returns the algorithm of the checksum to store with the object, where to write the content for it, nil if it
	// needs none, and what returns it then. Whole is nil if the object has no checksum.
	Whole func(parts []model.MultipartPart) (algorithm string, content io.Writer, sum func() (string, error))
}

// ErrParts means that the parts that a client names are not those of the upload.
var ErrParts = errors.New("other parts")

// ErrPartOrder means that the parts are not in the order of their numbers.
var ErrPartOrder = errors.New("parts out of order")

// ErrPartSize means that a part other than the last is too small.
var ErrPartSize = errors.New("part too small")

// ErrSize means that the object would have another size than the client says.
var ErrSize = errors.New("another size")

// MultipartComplete joins the parts to the object, even if the client has disconnected. Completing an upload again, as
// after a lost response or at the same time, returns the object.
func (s *Service) MultipartComplete(ctx context.Context, call *model.Call, in Completion) (model.Object, error) {
	m, release, err := s.claimMultipart(ctx, call, in.Bucket, in.Key, in.Multipart, "a request that ends it")
	if err != nil {
		if o, lookupErr := s.object(in.Bucket, in.Key); lookupErr == nil && in.Multipart != "" && o.Attributes != nil && o.Attributes.Upload == in.Multipart {
			return o, nil
		}
		return model.Object{}, err
	}
	defer release()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.core.Lifetime, cancel)()
	open, alone := s.places.close(m.ID)
	defer open()
	all, err := s.partsOf(m.ID)
	if err != nil {
		return model.Object{}, err
	}
	parts, size, err := chooseParts(all, in.Parts)
	if err != nil {
		return model.Object{}, err
	}
	if in.Size >= 0 && in.Size != size {
		return model.Object{}, partsError(ErrSize, "The provided 'x-amz-mp-object-size' header value %d does not match what was computed: %d", in.Size, size)
	}
	return s.joinParts(ctx, call, m, in, joining{parts, size, alone && inPlace(m, all, parts)})
}

// chooseParts returns the parts that the client names, and their size.
func chooseParts(all []model.MultipartPart, named []CompletedPart) (parts []model.MultipartPart, size int64, err error) {
	stored := map[int]model.MultipartPart{}
	for _, p := range all {
		stored[p.Number] = p
	}
	if len(named) == 0 {
		return nil, 0, partsError(ErrParts, "the list of parts is empty")
	}
	if !slices.IsSortedFunc(named, func(a, b CompletedPart) int { return cmp.Or(cmp.Compare(a.Number, b.Number), 1) }) {
		return nil, 0, partsError(ErrPartOrder, "the parts must be in the order of their numbers, each once")
	}
	for i, n := range named {
		p, ok := stored[n.Number]
		if !ok || n.MD5 != p.MD5 || n.Checksum != "" && n.Checksum != p.Checksum {
			return nil, 0, partsError(ErrParts, "part %d was not uploaded, or is another", n.Number)
		}
		if i < len(named)-1 && p.SizeBytes < MinPartBytes {
			return nil, 0, partsError(ErrPartSize, "part %d has %d bytes; only the last may have less than %d", n.Number, p.SizeBytes, MinPartBytes)
		}
		parts, size = append(parts, p), size+p.SizeBytes
	}
	return parts, size, nil
}

func partsError(cause error, format string, args ...any) error {
	return &model.Error{Code: model.CodeValidation, Message: fmt.Sprintf(format, args...), Err: cause}
}

// joining is what becomes an object.
type joining struct {
	parts   []model.MultipartPart
	size    int64 // in bytes
	inPlace bool  // they are the object in the joint
}

// joinParts publishes the parts as an object.
func (s *Service) joinParts(ctx context.Context, call *model.Call, m model.Multipart, in Completion, joining joining) (model.Object, error) {
	parts, size := joining.parts, joining.size
	if size > s.core.Config.MaxObjectBytes {
		return model.Object{}, tooLarge(s.core.Config.MaxObjectBytes)
	}
	attributes := model.Attributes{}
	if m.Attributes != nil {
		attributes = *m.Attributes
	}
	attributes.Parts, attributes.Upload = len(parts), m.ID
	for _, p := range parts {
		attributes.PartSizes = append(attributes.PartSizes, p.SizeBytes)
	}
	upload := Upload{
		Bucket: m.Bucket, Key: m.Key, ContentType: m.ContentType, Length: size,
		IfAbsent: in.IfAbsent, IfMatch: in.IfMatch, resumed: m.ID, reserved: size, Lock: m.Lock, Tags: m.Tags,
	}
	b, err := s.bucket(call, m.Bucket)
	if err != nil {
		return model.Object{}, err
	}
	takes := size
	if joining.inPlace {
		takes = 0
	}
	if err := s.refuseUpload(ctx, call, b, upload, takes); err != nil {
		return model.Object{}, err
	}
	sum := func() (string, error) { return "", nil }
	var content io.Writer
	if in.Whole != nil {
		attributes.ChecksumAlgorithm, content, sum = in.Whole(parts)
	}
	w, err := s.writeJoined(ctx, m, upload, joining, content)
	if err != nil {
		return model.Object{}, err
	}
	defer w.Abort()
	if attributes.Checksum, err = sum(); err != nil {
		return model.Object{}, err
	}
	upload.Describe = func(o *model.Object) { o.ETag, o.Attributes = joinedETag(parts), &attributes }
	call.Note("upload", m.ID)
	call.Note("parts", fmt.Sprint(len(parts)))
	return s.publishObject(ctx, call, upload, w)
}

// writeJoined returns a blob with the bytes of the parts, and writes them to content too unless that is nil.
func (s *Service) writeJoined(ctx context.Context, m model.Multipart, upload Upload, joining joining, content io.Writer) (*blobstore.Writer, error) {
	if joining.inPlace {
		sections := make([]blobstore.Section, len(joining.parts))
		for i, p := range joining.parts {
			sections[i] = blobstore.Section{Size: p.SizeBytes, CRC32C: p.CRC32C, Blocks: p.Blocks}
		}
		w, err := s.core.Blobs.FinishPart(ctx, m.Joint, sections, content)
		return w, storeError(err)
	}
	w, err := s.core.Blobs.Create(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	joined := &partsReader{blobs: s.core.Blobs, parts: joining.parts}
	defer joined.Close()
	upload.Body = s.space.withinReserve(joined, false)
	if content != nil {
		upload.Body = io.TeeReader(upload.Body, content)
	}
	if err := upload.copyTo(w, s.core.Config.MaxObjectBytes); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// joinedETag returns the ETag of an object of parts.
func joinedETag(parts []model.MultipartPart) string {
	digest := md5.New()
	for _, p := range parts {
		raw, _ := hex.DecodeString(p.MD5) // written by hex.EncodeToString
		digest.Write(raw)
	}
	return fmt.Sprintf("%x-%d", digest.Sum(nil), len(parts))
}

// partsReader reads parts one after the other.
type partsReader struct {
	blobs *blobstore.Store
	parts []model.MultipartPart
	open  io.ReadCloser
}

// Read implements io.Reader.
func (r *partsReader) Read(p []byte) (int, error) {
	for {
		if r.open == nil {
			if len(r.parts) == 0 {
				return 0, io.EOF
			}
			next := r.parts[0]
			open, err := r.blobs.OpenPart(next.Part, next.Start, next.SizeBytes, next.CRC32C)
			if err != nil {
				return 0, fmt.Errorf("part %d: %w", next.Number, err)
			}
			r.open, r.parts = open, r.parts[1:]
		}
		n, err := r.open.Read(p)
		if err != io.EOF {
			return n, err
		}
		if err := r.Close(); err != nil {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// Close implements io.Closer.
func (r *partsReader) Close() error {
	if r.open == nil {
		return nil
	}
	open := r.open
	r.open = nil
	return open.Close()
}
