package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"holdfast/cli/client"
)

// The acts of clients of S3 change the same objects as those of the API.

// openS3 makes the client of S3. Its key remains the same after a recovery.
func (c *chaos) openS3() {
	c.s3 = newS3(c.t, c.clients[0], c.s3Address, &s3Witness{c})
}

// newS3 returns a client of S3 with the credentials of a client of the API; nil is the default transport.
func newS3(t testing.TB, api *client.Client, address string, transport http.RoundTripper) *minio.Core {
	t.Helper()
	access, err := api.GetStorageCredentials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s3, err := minio.NewCore(address, &minio.Options{
		Creds:  credentials.NewStaticV4(access.AccessKeyID, access.SecretAccessKey, ""),
		Region: access.Region, MaxRetries: 1, Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s3
}

// changesNothing marks the context of a request that may succeed without a change: S3 deletes what is not there.
type changesNothing struct{}

// s3Witness is a transport that records acknowledged changes.
type s3Witness struct{ chaos *chaos }

// RoundTrip implements http.RoundTripper.
func (w *s3Witness) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Context().Value(changesNothing{}) != nil {
		return answer, err
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	// An upload in parts that fails while it is completed is answered with 200.
	if answer.StatusCode < http.StatusMultipleChoices && !bytes.Contains(text, []byte("<Error>")) {
		w.chaos.mu.Lock()
		w.chaos.changes[answer.Header.Get("X-Amz-Request-Id")] = "S3 " + r.Method + " " + r.URL.RequestURI()
		w.chaos.mu.Unlock()
	}
	return answer, nil
}

// s3Outcome is outcome for a request of S3.
func (c *chaos) s3Outcome(what string, err error, allowed ...string) outcome {
	refusal, isRefusal := errors.AsType[minio.ErrorResponse](err)
	switch {
	case err == nil:
		return done
	case !isRefusal || refusal.StatusCode == 0:
		return unknown
	case refusal.Code == "SlowDown", slices.Contains(allowed, refusal.Code):
		return refused
	case refusal.Code == "ServiceUnavailable" && c.fill != nil && strings.Contains(refusal.Message, "disk"):
		return refused
	}
	c.t.Errorf("S3: %s: %d %s: %s", what, refusal.StatusCode, refusal.Code, refusal.Message)
	if refusal.StatusCode >= http.StatusInternalServerError {
		return unknown
	}
	return refused
}

func (c *chaos) putByS3(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	v, opts := newVersion(random), minio.PutObjectOptions{}
	var allowed []string
	absent := random.IntN(4) == 0
	if absent {
		opts.SetMatchETagExcept("*")
	}
	if absent && o.mayExist() {
		allowed = []string{"PreconditionFailed"}
	}
	_, err := c.s3.PutObject(ctx, b.name, key, bytes.NewReader(v.bytes()), int64(v.size), "", "", opts)
	c.stored(key, o, c.s3Outcome("put", err, allowed...), v, absent)
	return true
}

func (c *chaos) deleteByS3(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	if slices.Contains(o.known(), noObject) {
		ctx = context.WithValue(ctx, changesNothing{}, true)
	}
	err := c.s3.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	o.asked(c.s3Outcome("delete", err), noObject)
	return true
}

// copyByS3 copies an object whose content is known to another key of the bucket.
func (c *chaos) copyByS3(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	n := random.IntN(chaosKeys)
	from := &b.objects[n]
	if from == o || !from.mu.TryLock() {
		return false
	}
	defer from.mu.Unlock()
	v := from.known()[0]
	if len(from.known()) > 1 || v == noObject || v.resumable { // a copy of a small one has no file
		return false
	}
	_, err := c.s3.CopyObject(ctx, b.name, objectKey(n), b.name, key, nil, minio.CopySrcOptions{}, minio.PutObjectOptions{})
	o.asked(c.s3Outcome("copy", err), v)
	return true
}

// uploadByS3 uploads an object in one or two parts, and completes that or aborts it.
func (c *chaos) uploadByS3(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	const smallest = 5 << 20 // of a part that is not the last
	v := version{seed: uint64(random.Uint32()) + 1, size: 1 + random.IntN(200_000)}
	if random.IntN(4) == 0 {
		v.size += smallest
	}
	completes := random.IntN(5) > 0
	id, err := c.s3.NewMultipartUpload(ctx, b.name, key, minio.PutObjectOptions{})
	if c.s3Outcome("begin an upload in parts", err) != done {
		return true // the next check aborts it, if it began
	}
	var parts []minio.CompletePart
	for part := range slices.Chunk(v.bytes(), smallest) {
		sent, err := c.s3.PutObjectPart(ctx, b.name, key, id, len(parts)+1, bytes.NewReader(part), int64(len(part)), minio.PutObjectPartOptions{})
		if c.s3Outcome("upload a part", err) != done {
			return true
		}
		parts = append(parts, minio.CompletePart{PartNumber: len(parts) + 1, ETag: sent.ETag})
	}
	if !completes {
		c.s3Outcome("abort an upload in parts", c.s3.AbortMultipartUpload(ctx, b.name, key, id))
		return true
	}
	_, err = c.s3.CompleteMultipartUpload(ctx, b.name, key, id, parts, minio.PutObjectOptions{})
	o.asked(c.s3Outcome("complete an upload in parts", err), v)
	return true
}

func (c *chaos) getByS3(ctx context.Context, random *rand.Rand, _ *client.Client) bool {
	b, key, o := c.pickObject(random)
	if b == nil {
		return false
	}
	defer b.release(o)
	body, _, _, err := c.s3.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == "NoSuchKey" {
		if !slices.Contains(o.known(), noObject) {
			c.t.Errorf("S3: %s in %s was acknowledged and is lost: %v", key, b.name, o.known())
		}
		return true
	}
	if c.s3Outcome("get", err) != done {
		return true
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err == nil && !o.mayBe(content) {
		c.t.Errorf("S3: %s in %s has %d bytes that no client stored: %v", key, b.name, len(content), o.known())
	}
	return true
}

// abortUploads aborts the uploads in parts of a bucket, whose clients have given up.
func (c *chaos) abortUploads(ctx context.Context, b *chaosBucket) {
	listed, err := c.s3.ListMultipartUploads(ctx, b.name, "", "", "", "", 1000)
	if err != nil {
		c.t.Errorf("S3: the uploads in parts of %s: %v", b.name, err)
	}
	for _, u := range listed.Uploads {
		if err := c.s3.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID); err != nil {
			c.t.Errorf("S3: abort an upload in parts: %v", err)
		}
	}
}
