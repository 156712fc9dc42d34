package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/zeebo/blake3"

	"holdfast/internal/ctxio"
	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// maxSmall bounds claims and other records of a few fields.
const maxSmall = 64 << 10

// Repository is what everything here works on: a store and the keys to what is in it.
type Repository struct {
	store objectstore.Store
	keys  *sealed.Ring
	zstd  *compressor
}

// NewRepository returns the repository in a store. It does not access the store.
func NewRepository(store objectstore.Store, keys *sealed.Ring) (*Repository, error) {
	c, err := newCompressor()
	if err != nil {
		return nil, fmt.Errorf("prepare compression: %w", err)
	}
	return &Repository{store, keys, c}, nil
}

// seal returns the sealed bytes of an object.
func (r *Repository) seal(key string, plain sealed.Body) (objectstore.Body, error) {
	return sealed.Seal(r.keys.Newest(), key, plain)
}

// get returns the plaintext of an object that must be there, at most limit bytes.
func (r *Repository) get(ctx context.Context, key string, limit int64) ([]byte, error) {
	return present(ctx, r, key, func() ([]byte, error) { return r.getOnce(ctx, key, limit) })
}

func (r *Repository) getOnce(ctx context.Context, key string, limit int64) (plain []byte, err error) {
	o, err := r.store.Get(ctx, key, objectstore.Range{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if o.Length > sealed.Size(limit) {
		return nil, corrupt("%s has %d bytes", key, o.Length)
	}
	size, err := sealed.PlainSize(o.Length)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	from, err := sealed.NewReader(o, o.Length, r.keys, key)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	plain = make([]byte, size)
	if _, err := io.ReadFull(from, plain); err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	// The end authenticates the whole, also of an object without content.
	if _, err := from.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("open %s: %w", key, errors.Join(sealed.ErrCorrupt, err))
	}
	return plain, nil
}

// errForeign means that a key has another object than the one to be stored there.
var errForeign = errors.New("the key has another object")

// create stores an object once. It returns nil also when an earlier attempt did it,
// and errForeign when somebody else used the key.
func (r *Repository) create(ctx context.Context, key string, plain sealed.Body, sealedBody objectstore.Body, opts objectstore.CreateOptions) error {
	err := r.store.Create(ctx, key, sealedBody, opts)
	if !errors.Is(err, objectstore.ErrExists) {
		return err
	}
	same, err := r.holds(ctx, key, plain)
	if err == nil && !same {
		err = fmt.Errorf("create %s: %w", key, errForeign)
	}
	return err
}

// holds reports whether a key has that plaintext.
func (r *Repository) holds(ctx context.Context, key string, plain sealed.Body) (bool, error) {
	same, err := reread(func() (bool, error) { return r.holdsOnce(ctx, key, plain) })
	if arrivesDamaged(err) {
		return false, nil
	}
	return same, err
}

func (r *Repository) holdsOnce(ctx context.Context, key string, plain sealed.Body) (bool, error) {
	o, err := r.store.Get(ctx, key, objectstore.Range{})
	if err != nil {
		return false, err
	}
	defer o.Close()
	from, err := sealed.NewReader(o, o.Length, r.keys, key)
	if err == nil && o.Length == sealed.Size(plain.Size()) {
		var want, got Hash
		if got, err = hashOf(from); err == nil {
			want, err = hashOfBody(ctx, plain)
			return err == nil && want == got, err
		}
	}
	return false, err
}

func hashOf(from io.Reader) (h Hash, err error) {
	b := blake3.New()
	if _, err := io.Copy(b, from); err != nil {
		return h, err
	}
	b.Sum(h[:0])
	return h, nil
}

// hashOfBody reads a body, until ctx ends.
func hashOfBody(ctx context.Context, body sealed.Body) (Hash, error) {
	from, err := body.Open()
	if err != nil {
		return Hash{}, err
	}
	h, err := hashOf(ctxio.NewReader(ctx, from))
	return h, errors.Join(err, from.Close())
}

// small is the plaintext of an object in memory.
type small []byte

func (s small) Size() int64 { return int64(len(s)) }

func (s small) Open() (io.ReadCloser, error) { return &smallReader{r: bytes.NewReader(s)}, nil }

// smallReader returns nothing after Close, also to a reader that runs beside it: the
// memory may then have other bytes, and sealing those with the same salt would reveal
// both.
type smallReader struct {
	mu sync.Mutex
	r  *bytes.Reader // nil after Close
}

// Read implements io.Reader.
func (s *smallReader) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.r == nil {
		return 0, fs.ErrClosed
	}
	return s.r.Read(p)
}

// Close implements io.Closer.
func (s *smallReader) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r = nil
	return nil
}
