package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Open returns a reader of length bytes of a file from offset on; a length of -1
// means all that follow. Every byte is authentic. A reader of the whole file also
// compares its hash and reports a difference at the end. The caller closes it.
func (r *Repository) Open(ctx context.Context, ref Reference, offset, length int64) (io.ReadCloser, error) {
	if length < 0 {
		length = ref.Size - offset
	}
	if offset < 0 || length < 0 || offset > ref.Size-length {
		return nil, fmt.Errorf("open a file of %d bytes: it has no %d bytes from %d on", ref.Size, length, offset)
	}
	f := &fileReader{ctx: ctx, repo: r, ref: ref, offset: offset, left: length}
	if offset == 0 && length == ref.Size {
		f.hash = blake3.New()
	}
	return f, nil
}

// fileReader reads a file part by part.
type fileReader struct {
	ctx    context.Context //nolint:containedctx // of Open
	repo   *Repository
	ref    Reference
	offset int64 // in the file
	left   int64
	part   io.Reader // nil between parts
	object io.Closer
	// damaged is how often in a row what follows has arrived damaged.
	damaged int
	// paused is how often in a row it was not found, while the store has it.
	paused int
	hash   *blake3.Hasher // nil for a range
	err    error
}

// Read implements io.Reader.
func (f *fileReader) Read(p []byte) (int, error) {
	for f.err == nil && len(p) > 0 {
		n, err := f.read(p)
		f.offset, f.left = f.offset+int64(n), f.left-int64(n)
		if f.hash != nil {
			_, _ = f.hash.Write(p[:n])
		}
		if n > 0 {
			f.damaged, f.paused = 0, 0
		}
		if errors.Is(err, objectstore.ErrNotFound) {
			err = f.find(err)
		}
		switch {
		case err == io.EOF:
			f.err = f.finish()
		case arrivesDamaged(err) && f.again():
		case err != nil:
			f.err = fmt.Errorf("read the file %s: %w", f.ref.partKey(f.offset/PartSize), err)
		}
		if n > 0 {
			return n, f.err
		}
	}
	return 0, f.err
}

// again prepares to read what follows from the store again, unless that was done
// often enough.
func (f *fileReader) again() bool {
	if f.damaged++; f.damaged >= maxReads {
		return false
	}
	if f.object != nil {
		_ = f.closePart()
	}
	return true
}

// find returns nil if the part that was not found is to be read again.
func (f *fileReader) find(notFound error) error {
	err := f.repo.confirmMissing(f.ctx, f.ref.partKey(f.offset/PartSize), f.paused, notFound)
	f.paused++
	if f.object != nil {
		_ = f.closePart()
	}
	return err
}

// finish returns io.EOF when the whole is what it should be.
func (f *fileReader) finish() error {
	if f.hash != nil && Hash(f.hash.Sum(nil)) != f.ref.Hash {
		return corrupt("the file %s is another one", f.ref.partKey(0))
	}
	return io.EOF
}

func (f *fileReader) read(p []byte) (int, error) {
	for {
		if f.part == nil {
			if f.left == 0 {
				return 0, io.EOF
			}
			if err := f.next(); err != nil {
				return 0, err
			}
		}
		n, err := f.part.Read(p)
		if err == io.EOF {
			err = f.closePart()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next opens the part that has the offset.
func (f *fileReader) next() error {
	part := f.offset / PartSize
	from := f.offset % PartSize
	n := min(f.left, f.ref.partSize(part)-from)
	if n == f.ref.partSize(part) {
		return f.nextWhole(part, n)
	}
	o, err := f.repo.opener(f.ctx, f.ref, part)
	if err != nil {
		return err
	}
	at, length := o.Range(from, n)
	object, err := f.repo.store.Get(f.ctx, f.ref.partKey(part), objectstore.Range{Offset: at, Length: length})
	if err != nil {
		return err
	}
	f.part, f.object = o.Reader(object, from, n), object
	return nil
}

// nextWhole opens a part with one request.
func (f *fileReader) nextWhole(part, size int64) error {
	key := f.ref.partKey(part)
	object, err := f.repo.store.Get(f.ctx, key, objectstore.Range{})
	if err != nil {
		return err
	}
	err = checkSize(object.Length, size)
	if err == nil {
		f.part, err = sealed.NewReader(object, object.Length, f.repo.keys, key)
	}
	if err != nil {
		return errors.Join(err, object.Close())
	}
	f.object = object
	return nil
}

func checkSize(got, plain int64) error {
	if want := sealed.Size(plain); got != want {
		return corrupt("it has %d bytes, not %d", got, want)
	}
	return nil
}

// opener reads the header of a part.
func (r *Repository) opener(ctx context.Context, ref Reference, part int64) (*sealed.Opener, error) {
	key := ref.partKey(part)
	object, err := r.store.Get(ctx, key, objectstore.Range{Length: sealed.HeaderSize})
	if err != nil {
		return nil, err
	}
	defer object.Close()
	if err := checkSize(object.Info.Size, ref.partSize(part)); err != nil {
		return nil, err
	}
	header := make([]byte, sealed.HeaderSize)
	if _, err := io.ReadFull(object, header); err != nil {
		return nil, err
	}
	return sealed.NewOpener(header, object.Info.Size, r.keys, key)
}

func (f *fileReader) closePart() error {
	object := f.object
	f.part, f.object = nil, nil
	return object.Close()
}

// Close implements io.Closer.
func (f *fileReader) Close() error {
	if f.err == nil {
		f.err = errors.New("the file is closed")
	}
	if f.object == nil {
		return nil
	}
	return f.closePart()
}

// Confirm returns nil if the store has a file, whole; an error for which Damaged is true if it has not. It compares sizes, and
// also reads the file back if readBack is set.
func (r *Repository) Confirm(ctx context.Context, ref Reference, readBack bool) error {
	for part := range ref.parts() {
		key := ref.partKey(part)
		info, err := r.store.Stat(ctx, key)
		if err == nil {
			err = checkSize(info.Size, ref.partSize(part))
		}
		if err != nil {
			return fmt.Errorf("confirm the file %s: %w", key, err)
		}
	}
	if !readBack {
		return nil
	}
	body, err := r.Open(ctx, ref, 0, -1)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// checkFiles returns an error that wraps ErrCorrupt when a file of a checkpoint's
// entries is missing or has another size, but for those that it may lack. It lists; it does not read.
func (r *Repository) checkFiles(ctx context.Context, c *Checkpoint, mayLack func(Entry) bool) error {
	wanted := map[Epoch][]Reference{}
	for e, err := range r.Catalog(ctx, c) {
		if err != nil {
			return err
		}
		if !e.Ref.IsZero() && !mayLack(e) {
			wanted[e.Ref.Epoch] = append(wanted[e.Ref.Epoch], e.Ref)
		}
	}
	for epoch, refs := range wanted {
		slices.SortFunc(refs, func(a, b Reference) int { return strings.Compare(a.partKey(0), b.partKey(0)) })
		if err := r.checkParts(ctx, epoch, slices.Compact(refs)); err != nil {
			return err
		}
	}
	return nil
}

// checkParts compares references, in the order of their keys, with a listing.
func (r *Repository) checkParts(ctx context.Context, e Epoch, refs []Reference) error {
	before := strings.TrimSuffix(refs[0].partKey(0), "/000000")
	next, stop := iter.Pull2(r.store.List(ctx, e.filesPrefix(), before))
	defer stop()
	info, err, ok := next()
	for _, ref := range refs {
		for part := range ref.parts() {
			key := ref.partKey(part)
			for ok && err == nil && info.Key < key {
				info, err, ok = next()
			}
			if err != nil {
				return fmt.Errorf("list the files of epoch %s: %w", e, err)
			}
			if !ok || info.Key != key {
				return corrupt("the file %s is missing", key)
			}
			if err := checkSize(info.Size, ref.partSize(part)); err != nil {
				return fmt.Errorf("the file %s: %w", key, err)
			}
		}
	}
	return nil
}
