package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// openS3 makes the client of S3, which all clients share.
func (s *soak) openS3(address string) {
	api, hangUp := s.newAPI(0)
	defer hangUp()
	s.s3 = newS3(s.t, api, address, nil)
}

// soakBucket is the name of the bucket.
const soakBucket = "soak"

// s3Error returns an error of S3 as that of the API, if it asks to come again later.
func s3Error(err error) error {
	if minio.ToErrorResponse(err).Code == "SlowDown" {
		return &client.Error{Code: wire.CodeRateLimited, RetryAfter: time.Second}
	}
	return err
}

func (c *soakClient) putByS3(ctx context.Context) error {
	n, v := rand.IntN(soakKeys), newVersion(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	_, err := c.s3.PutObject(ctx, soakBucket, c.objectAt(n), bytes.NewReader(v.bytes()), int64(v.size), "", "", minio.PutObjectOptions{})
	if err == nil {
		c.objects[n] = v
	}
	return s3Error(err)
}

// uploadByS3 uploads an object in two parts.
func (c *soakClient) uploadByS3(ctx context.Context) error {
	const smallest = 5 << 20 // of a part that is not the last
	n, v := rand.IntN(soakKeys), version{seed: uint64(rand.Uint32()) + 1, size: smallest + 1 + rand.IntN(200_000)}
	id, err := c.s3.NewMultipartUpload(ctx, soakBucket, c.objectAt(n), minio.PutObjectOptions{})
	if err != nil {
		return s3Error(err)
	}
	var parts []minio.CompletePart
	for part := range slices.Chunk(v.bytes(), smallest) {
		sent, err := c.s3.PutObjectPart(ctx, soakBucket, c.objectAt(n), id, len(parts)+1, bytes.NewReader(part), int64(len(part)), minio.PutObjectPartOptions{})
		if err != nil {
			_ = c.s3.AbortMultipartUpload(ctx, soakBucket, c.objectAt(n), id)
			return s3Error(err)
		}
		parts = append(parts, minio.CompletePart{PartNumber: len(parts) + 1, ETag: sent.ETag})
	}
	if _, err := c.s3.CompleteMultipartUpload(ctx, soakBucket, c.objectAt(n), id, parts, minio.PutObjectOptions{}); err != nil {
		_ = c.s3.AbortMultipartUpload(ctx, soakBucket, c.objectAt(n), id)
		return s3Error(err)
	}
	c.objects[n] = v
	return nil
}

func (c *soakClient) getByS3(ctx context.Context) error {
	n := rand.IntN(soakKeys)
	body, _, _, err := c.s3.GetObject(ctx, soakBucket, c.objectAt(n), minio.GetObjectOptions{})
	if c.objects[n] == noObject && minio.ToErrorResponse(err).Code == "NoSuchKey" {
		return nil
	}
	if err != nil {
		return s3Error(err)
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err == nil && (c.objects[n] == noObject || !bytes.Equal(content, c.objects[n].bytes())) {
		err = fmt.Errorf("%s has %d bytes by S3, and was %+v", c.objectAt(n), len(content), c.objects[n])
	}
	return err
}
