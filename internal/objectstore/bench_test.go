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
	"holdfast/internal/rounds"
	"holdfast/internal/sealed"
)

// BenchmarkThroughput moves packs and small objects, four at a time, sealed in a Store, with minio-go
// alone, and with a Store alone, in rounds, and reports the ratios of the rates, and the rates: MB/s of
// packs, objects a second of small ones.
func BenchmarkThroughput(b *testing.B) {
	for _, server := range Servers(b) {
		for _, load := range []struct {
			name, unit string
			many, size int
		}{{"packs", "MB", 16, 16 << 20}, {"small", "objects", 400, 16 << 10}} {
			b.Run(server.Name+"/"+load.name, func(b *testing.B) {
				bench := newBench(b, server, load.size)
				total := float64(load.many)
				if load.unit == "MB" {
					total *= float64(load.size) / 1e6
				}
				up, down := rounds.Compare(ways...), rounds.Compare(ways...)
				for b.Loop() {
					for range rounds.Least {
						bench.compare(b, up, down, load.many, total)
					}
				}
				for name, c := range map[string]*rounds.Comparison{"up": up, "down": down} {
					c.Report(b, load.name+"-"+name+"-rate")
					for _, way := range ways {
						b.ReportMetric(rounds.Median(c.Values(way)), way+"-"+name+"-"+load.unit+"/s")
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// ways are what is compared.
var ways = []string{"sealed", rounds.Itself, "minio-go", "store"}

// compare makes a round of uploads, and one of downloads of what was uploaded.
func (n *bench) compare(b *testing.B, up, down *rounds.Comparison, many int, total float64) {
	b.Helper()
	rate := func(do func(context.Context, string) error) func() float64 {
		return func() float64 { return total / n.all(b, many, do).Seconds() }
	}
	var ups, downs []rounds.Arm
	for i, way := range n.ways() {
		ups = append(ups, rounds.Arm{Name: ways[i], Measure: rate(way.up)})
		downs = append(downs, rounds.Arm{Name: ways[i], Measure: rate(way.down)})
	}
	up.Round(ups...)
	down.Round(downs...)
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
		n.sealed("e/"), n.sealed("i/"),
		{n.bareUp, n.bareDown},
		{func(ctx context.Context, key string) error {
			return n.store.Create(ctx, "s/"+key, objectstore.Bytes(n.content), objectstore.CreateOptions{})
		}, func(ctx context.Context, key string) error {
			_, err := n.open(ctx, "s/"+key)
			return err
		}},
	}
}

// sealed returns the way that the copy takes, below a prefix.
func (n *bench) sealed(prefix string) way {
	return way{func(ctx context.Context, key string) error {
		body, err := sealed.Seal(n.key, prefix+key, objectstore.Bytes(n.content))
		if err != nil {
			return err
		}
		return n.store.Create(ctx, prefix+key, body, objectstore.CreateOptions{})
	}, func(ctx context.Context, key string) error { return n.sealedDown(ctx, prefix+key) }}
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
	o, err := n.store.Get(ctx, key, objectstore.Range{})
	if err != nil {
		return err
	}
	defer o.Close()
	r, err := sealed.NewReader(o, o.Length, n.keys, key)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return err
}
