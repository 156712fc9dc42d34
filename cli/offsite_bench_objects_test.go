package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/parallel"
)

// manyObjects is the size of the bucket of BenchmarkOffsiteObjects.
const manyObjects = 100_000

// BenchmarkOffsiteObjects fills a bucket with 100,000 objects of 1 KiB, kills the appliance, recovers it from an S3 server, and reports
// how long the uploads and the recovery took, and how many bytes the copy has. Every hundredth object is compared.
func BenchmarkOffsiteObjects(b *testing.B) {
	for b.Loop() {
		old := newMachine(b)
		c := old.prepareBucket(b)
		old.start(c.serveFlags()...)
		bucket := old.createBucket("files")
		began := time.Now()
		if err := parallel.Do(b.Context(), 32, numbers(manyObjects), func(ctx context.Context, queue <-chan int) error {
			for n := range queue {
				if err := old.uploadObject(ctx, bucket, n); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(manyObjects/time.Since(began).Seconds(), "uploads/s")
		began = time.Now()
		old.awaitCopied()
		b.ReportMetric(time.Since(began).Seconds(), "s/until-copied")
		old.killAll()
		fresh := old.elsewhere()
		fresh.env = old.env
		began = time.Now()
		fresh.recoverFrom(c)
		b.ReportMetric(time.Since(began).Seconds(), "s/api")
		for n := 0; n < manyObjects; n += 100 {
			var object struct {
				URL string `json:"download_url"`
			}
			fresh.must("GET", fmt.Sprintf("/buckets/%s/objects/many/%d", bucket, n), nil, &object)
			if status, got := download(b, object.URL); status != http.StatusOK || got != manyContent(n) {
				b.Fatalf("object %d: %d, with %d bytes", n, status, len(got))
			}
		}
		var got struct {
			Objects int64 `json:"object_count"`
		}
		fresh.must("GET", "/buckets/"+bucket, nil, &got)
		if got.Objects != manyObjects {
			b.Fatalf("%d objects are back", got.Objects)
		}
		fresh.stop()
	}
}

func manyContent(n int) string { return strings.Repeat(fmt.Sprintf("%8d", n), 128) }

func (m *machine) uploadObject(ctx context.Context, bucket string, n int) error {
	request, err := http.NewRequestWithContext(ctx, "POST", fmt.Sprintf("%s/buckets/%s/objects?key=many/%d", m.api, bucket, n), strings.NewReader(manyContent(n)))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+m.key)
	request.Header.Set("Content-Type", "application/octet-stream")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("object %d: %d %s, %w", n, answer.StatusCode, text, err)
	}
	return nil
}

// numbers yields the numbers from 0 to n-1.
func numbers(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
