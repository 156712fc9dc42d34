// aws-sdk-go uses an S3 endpoint with version 2 of the AWS SDK for Go. The endpoint and the keys are in the environment,
// and the files in the working directory. It is a module of its own, so that the product does not depend on the SDK.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const bucket = "files"

type tester struct{ *s3.Client }

func run(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	t := tester{s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })}
	if _, err := t.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{t.checksums, t.conditions, t.parts, t.locks, t.presigned, t.versions, t.clear} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t tester) put(ctx context.Context, key, body string, change ...func(*s3.PutObjectInput)) (*s3.PutObjectOutput, error) {
	in := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(body)}
	for _, c := range change {
		c(in)
	}
	return t.PutObject(ctx, in)
}

// want fails unless an object has that content.
func (t tester) want(ctx context.Context, key string, content []byte) error {
	got, err := t.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil && !bytes.Equal(text, content) {
		err = fmt.Errorf("%s has %d bytes that are not those of %d", key, len(text), len(content))
	}
	return err
}

func refused(err error, code string) error {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		return fmt.Errorf("the error is %v, not %s", err, code)
	}
	return nil
}

func (t tester) checksums(ctx context.Context) error {
	for _, algorithm := range []types.ChecksumAlgorithm{
		types.ChecksumAlgorithmCrc32, types.ChecksumAlgorithmCrc32c, types.ChecksumAlgorithmCrc64nvme, types.ChecksumAlgorithmSha1, types.ChecksumAlgorithmSha256,
	} {
		if _, err := t.put(ctx, "sums/"+string(algorithm), "hello", func(in *s3.PutObjectInput) { in.ChecksumAlgorithm = algorithm }); err != nil {
			return fmt.Errorf("%s: %w", algorithm, err)
		}
		if err := t.want(ctx, "sums/"+string(algorithm), []byte("hello")); err != nil {
			return err
		}
	}
	return nil
}

func (t tester) conditions(ctx context.Context) error {
	first, err := t.put(ctx, "a b/ü+", "0123456789", func(in *s3.PutObjectInput) { in.Metadata = map[string]string{"owner": "ann"} })
	if err != nil {
		return err
	}
	_, err = t.put(ctx, "a b/ü+", "x", func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") })
	if err := refused(err, "PreconditionFailed"); err != nil {
		return err
	}
	if _, err := t.put(ctx, "a b/ü+", "new", func(in *s3.PutObjectInput) { in.IfMatch = first.ETag }); err != nil {
		return err
	}
	_, err = t.put(ctx, "a b/ü+", "newer", func(in *s3.PutObjectInput) { in.IfMatch = first.ETag })
	return refused(err, "PreconditionFailed")
}

// parts uploads a stream of unknown length, and downloads it in parts.
func (t tester) parts(ctx context.Context) error {
	big, err := os.ReadFile("big")
	if err != nil {
		return err
	}
	uploads := manager.NewUploader(t.Client, func(u *manager.Uploader) { u.PartSize = 5 << 20 })
	if _, err := uploads.Upload(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("big"), Body: io.MultiReader(bytes.NewReader(big))}); err != nil {
		return err
	}
	got := manager.NewWriteAtBuffer(nil)
	if _, err := manager.NewDownloader(t.Client).Download(ctx, got, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("big")}); err != nil {
		return err
	}
	if !bytes.Equal(got.Bytes(), big) {
		return errors.New("the download differs from the upload")
	}
	if _, err := t.CopyObject(ctx, &s3.CopyObjectInput{Bucket: aws.String(bucket), Key: aws.String("copy"), CopySource: aws.String(bucket + "/big")}); err != nil {
		return err
	}
	return t.want(ctx, "copy", big)
}

// locks takes and releases a lock as Terraform does: of several that create a file conditionally, one wins.
func (t tester) locks(ctx context.Context) error {
	for range 3 {
		var won atomic.Int32
		var wait sync.WaitGroup
		failed := make([]error, 8)
		for n := range failed {
			wait.Go(func() {
				_, err := t.put(ctx, "state.tflock", fmt.Sprint(n), func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") })
				if err == nil {
					won.Add(1)
				} else if refused(err, "PreconditionFailed") != nil {
					failed[n] = refused(err, "ConditionalRequestConflict")
				}
			})
		}
		wait.Wait()
		if err := errors.Join(failed...); err != nil || won.Load() != 1 {
			return fmt.Errorf("%d have taken the lock: %w", won.Load(), err)
		}
		if _, err := t.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("state.tflock")}); err != nil {
			return err
		}
	}
	return nil
}

func (t tester) presigned(ctx context.Context) error {
	signer := s3.NewPresignClient(t.Client)
	put, err := signer.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("put")}, s3.WithPresignExpires(time.Minute))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, put.Method, put.URL, strings.NewReader("presigned"))
	if err != nil {
		return err
	}
	r.Header = put.SignedHeader
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("presigned PUT: %s", res.Status)
	}
	return t.want(ctx, "put", []byte("presigned"))
}

// versions brings back a deleted object.
func (t tester) versions(ctx context.Context) error {
	_, err := t.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: aws.String(bucket), VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		return err
	}
	if _, err := t.put(ctx, "kept", "first"); err != nil {
		return err
	}
	gone, err := t.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("kept")})
	if err != nil || gone.DeleteMarker == nil || !*gone.DeleteMarker {
		return fmt.Errorf("there is no delete marker: %w", err)
	}
	if _, err := t.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("kept"), VersionId: gone.VersionId}); err != nil {
		return err
	}
	return t.want(ctx, "kept", []byte("first"))
}

// clear deletes all versions, and the bucket, which must then be empty.
func (t tester) clear(ctx context.Context) error {
	var all []types.ObjectIdentifier
	pages := s3.NewListObjectVersionsPaginator(t.Client, &s3.ListObjectVersionsInput{Bucket: aws.String(bucket), MaxKeys: aws.Int32(5)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, v := range page.Versions {
			all = append(all, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
	}
	if !slices.ContainsFunc(all, func(o types.ObjectIdentifier) bool { return *o.Key == "a b/ü+" }) {
		return errors.New("the list lacks an object")
	}
	out, err := t.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: aws.String(bucket), Delete: &types.Delete{Objects: all}})
	if err != nil || len(out.Errors) > 0 {
		return fmt.Errorf("delete %d objects: %v, %w", len(all), out.Errors, err)
	}
	_, err = t.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: aws.String(bucket)})
	return err
}
