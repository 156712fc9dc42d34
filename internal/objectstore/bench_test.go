package objectstore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"holdfast/internal/objectstore"
	. "holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/sealed"
)

// BenchmarkThroughput moves packs and small objects, four at a time, with minio-go
// alone, with a Store, and sealed as well, in turns, and reports the rates: MB/s of
// packs, objects a second of small ones.
func BenchmarkThroughput(b *testing.B) {
	for _, server := range Servers(b) {
		for _, load := range []struct {
			name, unit string
			many, size int
		}{{"packs", "MB", 16, 16 << 20}, {"small", "objects", 400, 16 << 10}} {
			b.Run(server.Name+"/"+load.name, func(b *testing.B) {
				bench := newBench(b, server, load.size)
				took := map[string]time.Duration{}
				for b.Loop() {
					for _, way := range bench.ways() {
						took[way.name+"-up"] += bench.all(b, load.many, way.up)
						took[way.name+"-down"] += bench.all(b, load.many, way.down)
					}
				}
				total := float64(load.many * b.N)
				if load.unit == "MB" {
					total *= float64(load.size) / 1e6
				}
				for name, d := range took {
					b.ReportMetric(total/d.Seconds(), name+"-"+load.unit+"/s")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

type bench struct {
	bucket  string
	bare    *minio.Client
	store   objectstore.Store
	key     sealed.Key
	keys    *sealed.Ring
	content []byte
	round   int
}

type way struct {
	name     string
	up, down func(ctx context.Context, key string) error
}

func newBench(b *testing.B, server *Server, size int) *bench {
	b.Helper()
	n := &bench{bucket: server.Bucket(b, false), key: sealed.NewKey(1), content: Random(size, 1)}
	var err error
	if n.keys, err = sealed.NewRing(n.key); err != nil {
		b.Fatal(err)
	}
	n.bare, err = minio.New(strings.TrimPrefix(server.URL, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(server.AccessKey, server.SecretKey, ""), Region: "us-east-1",
	})
	if err != nil {
		b.Fatal(err)
	}
	if n.store, err = objectstore.Open(b.Context(), "s3://"+n.bucket, objectstore.Options{Getenv: server.Environment("").Getenv}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { n.store.Close() })
	return n
}

// all calls do for many keys, four at a time, and returns how long it took.
func (n *bench) all(b *testing.B, many int, do func(context.Context, string) error) time.Duration {
	b.Helper()
	var all sync.WaitGroup
	began := time.Now()
	for part := range 4 {
		all.Go(func() {
			for i := part; i < many; i += 4 {
				if err := do(b.Context(), fmt.Sprintf("%d/%d", n.round, i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// ways returns the ways to compare, with new keys.
func (n *bench) ways() []way {
	n.round++
	return []way{
		{"bare", n.bareUp, n.bareDown},
		{"store", func(ctx context.Context, key string) error {
			return n.store.Create(ctx, "s/"+key, objectstore.Bytes(n.content), objectstore.CreateOptions{})
		}, func(ctx context.Context, key string) error {
			_, err := n.open(ctx, "s/"+key)
			return err
		}},
		{"sealed", func(ctx context.Context, key string) error {
			body, err := sealed.Seal(n.key, "e/"+key, objectstore.Bytes(n.content))
			if err != nil {
				return err
			}
			return n.store.Create(ctx, "e/"+key, body, objectstore.CreateOptions{})
		}, n.sealedDown},
	}
}

func (n *bench) bareUp(ctx context.Context, key string) error {
	_, err := n.bare.PutObject(ctx, n.bucket, "b/"+key, bytes.NewReader(n.content), int64(len(n.content)), minio.PutObjectOptions{DisableMultipart: true})
	return err
}

func (n *bench) bareDown(ctx context.Context, key string) error {
	o, err := n.bare.GetObject(ctx, n.bucket, "b/"+key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer o.Close()
	_, err = io.Copy(io.Discard, o)
	return err
}

func (n *bench) open(ctx context.Context, key string) (int64, error) {
	o, err := n.store.Get(ctx, key, objectstore.Range{})
	if err != nil {
		return 0, err
	}
	defer o.Close()
	return io.Copy(io.Discard, o)
}

func (n *bench) sealedDown(ctx context.Context, key string) error {
	o, err := n.store.Get(ctx, "e/"+key, objectstore.Range{})
	if err != nil {
		return err
	}
	defer o.Close()
	r, err := sealed.NewReader(o, o.Length, n.keys, "e/"+key)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return err
}
