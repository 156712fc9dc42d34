package cli_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/minio/minio-go/v7"
)

// s3Upload is what a client was told of an upload in parts, to a key that nothing else uses.
type s3Upload struct {
	name      s3Name
	id        string // "" if the client was not told
	parts     []minio.CompletePart
	sent      []s3Content // the contents of the parts, of the last perhaps without an answer
	completes bool        // rather than aborts
	ends      bool        // a request to end it was sent
	over      bool        // and answered
}

// content returns the parts as one.
func (u *s3Upload) content() (all []byte) {
	for _, part := range u.sent {
		all = append(all, part.bytes()...)
	}
	return all
}

func (c *s3Client) complete(ctx context.Context) error { return c.upload(ctx, true) }

func (c *s3Client) abort(ctx context.Context) error { return c.upload(ctx, false) }

// upload uploads an object in parts, and completes that or aborts it.
func (c *s3Client) upload(ctx context.Context, completes bool) (err error) {
	u := &s3Upload{name: s3Name{s3Bucket, fmt.Sprintf("parts/%d/%d/%d", c.round, c.n, c.random.Uint32())}, completes: completes}
	c.mu.Lock()
	c.uploads = append(c.uploads, u)
	c.mu.Unlock()
	if u.id, err = c.api.NewMultipartUpload(ctx, u.name.bucket, u.name.key, minio.PutObjectOptions{}); err != nil {
		return err
	}
	sizes := []int{1 + c.random.IntN(200_000)}
	if c.random.IntN(4) == 0 {
		sizes = append([]int{5 << 20}, sizes...) // the smallest part that need not be the last
	}
	for i, size := range sizes {
		part := s3Content{c.random.Uint64(), size}
		u.sent = append(u.sent, part)
		done, err := c.api.PutObjectPart(ctx, u.name.bucket, u.name.key, u.id, i+1, bytes.NewReader(part.bytes()), int64(size), minio.PutObjectPartOptions{})
		if err != nil {
			return err
		}
		u.parts = append(u.parts, minio.CompletePart{PartNumber: i + 1, ETag: done.ETag})
	}
	u.ends = true
	err = c.end(ctx, u)
	u.over = err == nil
	return err
}

// end completes or aborts an upload.
func (k *s3Killed) end(ctx context.Context, u *s3Upload) (err error) {
	if u.completes {
		_, err = k.api.CompleteMultipartUpload(ctx, u.name.bucket, u.name.key, u.id, u.parts, minio.PutObjectOptions{})
		return err
	}
	return k.api.AbortMultipartUpload(ctx, u.name.bucket, u.name.key, u.id)
}
