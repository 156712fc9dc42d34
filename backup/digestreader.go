package backup

import (
	"context"
	"io"

	"github.com/zeebo/blake3"
)

// digestReader computes the digest of what is read through it, until ctx ends.
type digestReader struct {
	ctx  context.Context
	r    io.Reader
	hash *blake3.Hasher
}

func newDigestReader(ctx context.Context, r io.Reader) *digestReader {
	return &digestReader{ctx: ctx, r: r, hash: blake3.New()}
}

// Read implements io.Reader.
func (d *digestReader) Read(p []byte) (int, error) {
	if err := context.Cause(d.ctx); err != nil {
		return 0, err
	}
	n, err := d.r.Read(p)
	d.hash.Write(p[:n])
	return n, err
}

// drain reads what is left, so that the digest is that of the whole.
func (d *digestReader) drain() error {
	_, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{d}, make([]byte, copyBuffer))
	return err
}

func (d *digestReader) digest() string { return hexDigest(d.hash) }

// countingReader reports what is read through it.
type countingReader struct {
	r        io.Reader
	progress *progress
}

// Read implements io.Reader.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.progress.add(n)
	return n, err
}
