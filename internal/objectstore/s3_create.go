package objectstore

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"

	"holdfast/internal/ctxio"
)

// The metadata that Create gives an object.
const (
	markHeader = "holdfast-create" // random, one for each call of Create
	crcHeader  = "holdfast-crc32c" // of the bytes, as digests.crc gives it
)

// Create implements Store.
func (b *bucket) Create(ctx context.Context, key string, body Body, opts CreateOptions) error {
	if err := b.check("create", key); err != nil {
		return err
	}
	if err := checkCreate(body, opts); err != nil {
		return b.unsupported("create", key, err)
	}
	p := &creation{bucket: b, key: key, body: body, retention: opts.Retention, mark: rand.Text(), conditional: !b.options.Unconditional}
	return b.do(ctx, "create", key, func(ctx context.Context) error {
		if p.sums == (digests{}) {
			if err := p.digest(ctx); err != nil {
				return err
			}
		}
		return p.attempt(ctx)
	})
}

// creation is one call of Create.
type creation struct {
	bucket    *bucket
	key       string
	body      Body
	retention Retention
	mark      string
	sums      digests // of the body

	conditional bool // whether the store looks for the key
}

// digest reads the body. Its checksums go ahead of it in the signed header of the
// request, so that every store verifies them.
func (c *creation) digest(ctx context.Context) error {
	h := newDigester()
	err := c.read(ctx, func(r io.Reader, s *sized) error {
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
		return s.finish()
	})
	if err != nil {
		return err
	}
	c.sums = h.digests()
	return nil
}

// read opens the body for use, which gets a reader of exactly its size.
//
// An error of the body is returned as such, whatever became of it on its way
// through the HTTP client.
func (c *creation) read(ctx context.Context, use func(io.Reader, *sized) error) error {
	r, err := c.body.Open()
	if err != nil {
		return &bodyError{err}
	}
	defer r.Close()
	s := newSized(r, c.body.Size())
	err = use(ctxio.NewReader(ctx, s), s)
	if bodyErr := s.end(); bodyErr != nil {
		return bodyErr
	}
	return err
}

// attempt writes the object once.
func (c *creation) attempt(ctx context.Context) error {
	if !c.conditional {
		if err := c.compare(ctx); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	err := c.read(ctx, func(r io.Reader, _ *sized) error { return c.put(ctx, r) })
	if answered(err).Code == minio.PreconditionFailed {
		return c.meet(ctx, err)
	}
	return err
}

// meet is for a key that has an object: it may be the one of an earlier attempt of
// this call, whose answer was lost, or that a proxy repeated.
func (c *creation) meet(ctx context.Context, refusal error) error {
	err := c.compare(ctx)
	if errors.Is(err, ErrNotFound) { // removed meanwhile, or not visible yet
		return &Error{Act: "create", Key: c.key, Store: c.bucket.String(), Kind: ErrUnavailable, Detail: c.bucket.redact(refusal.Error()), retry: true}
	}
	return err
}

// compare returns nil when the key has the object of this call, ErrExists when it has
// another one, and ErrNotFound.
func (c *creation) compare(ctx context.Context) error {
	info, err := c.bucket.head(ctx, c.key)
	if err != nil {
		return err
	}
	if info.Metadata.Get("X-Amz-Meta-"+markHeader) != c.mark || info.Size != c.body.Size() {
		return ErrExists
	}
	return nil
}

// put is one request. Its body is plain: neither in chunks nor with a trailer, which
// not all stores understand.
func (c *creation) put(ctx context.Context, r io.Reader) error {
	opts := minio.PutObjectOptions{
		DisableContentSha256: true, // of chunks: the whole one is given
		UserMetadata: map[string]string{
			"x-amz-checksum-crc32c": c.sums.crc,
			crcHeader:               c.sums.crc,
			markHeader:              c.mark,
		},
	}
	if c.conditional {
		opts.SetMatchETagExcept("*")
	}
	if c.retention.Mode != "" {
		opts.Mode, opts.RetainUntilDate = minio.RetentionMode(c.retention.Mode), c.retention.Until
	}
	_, err := c.bucket.core.PutObject(ctx, c.bucket.name, c.bucket.object(c.key),
		limitUpload(ctx, r, c.bucket.options.Limiter), c.body.Size(), "", c.sums.sha256, opts)
	return err
}
