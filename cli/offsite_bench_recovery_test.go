package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/parallel"
	"holdfast/internal/rounds"
	"holdfast/server/api/wire"
)

// BenchmarkOffsiteRecovery recovers a database of 1.6 GB from an S3 server on an empty directory, and compares the time until it
// is available with that of a restore from the local backup together with that of the transfer: the requests that a recovery makes
// of the store, made again by the client alone.
func BenchmarkOffsiteRecovery(b *testing.B) {
	old := newMachine(b)
	server := objectstoretest.Servers(b)[0]
	proxy := objectstoretest.NewProxy(b, server.URL)
	_, passphrase := old.store(b)
	bucket := server.Bucket(b, false)
	env := func(url string) (all []string) {
		for name, value := range server.Environment(url) {
			all = append(all, name+"="+value)
		}
		return all
	}
	base := old.env
	old.env = slices.Concat(base, env(""))
	c := old.prepare(copied{"s3://" + bucket + "/home", passphrase})
	old.start(append(c.serveFlags(), "--backup-interval", "0", "--no-verification")...)
	shop := old.createDatabase("bench")
	n := &benchedMachine{old, old.connectionURL(shop.ID)}
	n.pgbench(b, "-i", "-q", "-s", "107")
	old.backup(shop.ID)
	n.pgbench(b, "-n", "-c", "4", "-t", "2000") // log to replay
	old.awaitCopied()
	var times struct{ recovery, local, transfer []float64 }
	for b.Loop() {
		for range 3 {
			times.local = append(times.local, old.restoreLatest(b, shop.ID).Seconds())
			if got := query(b, n.url, "select count(*) from pgbench_history"); got != "8000" {
				b.Fatalf("%s transactions are left after a restore", got)
			}
		}
		old.awaitCopied()
		old.killAll()
		var requests []objectstoretest.Request
		for round := range 4 {
			fresh := old.elsewhere()
			fresh.description, fresh.env = old.description, slices.Concat(base, env(""))
			if round == 0 {
				fresh.env = slices.Concat(base, env(proxy.URL))
			}
			began := time.Now()
			fresh.recoverFrom(c)
			fresh.awaitAvailable(shop.ID)
			took := time.Since(began).Seconds()
			if got := query(b, fresh.connectionURL(shop.ID), "select count(*) from pgbench_history"); got != "8000" {
				b.Fatalf("%s transactions are back", got)
			}
			fresh.killAll()
			if err := os.RemoveAll(fresh.dataDir); err != nil {
				b.Fatal(err)
			}
			if round == 0 { // to learn what a recovery reads
				requests = proxy.Requests()
				continue
			}
			times.recovery = append(times.recovery, took)
			seconds, bytes := transfer(b, server, bucket, requests)
			times.transfer = append(times.transfer, seconds)
			b.ReportMetric(float64(bytes)/1e6, "MB-read")
		}
	}
	var ratios []float64
	for i := range times.recovery {
		ratios = append(ratios, times.recovery[i]/(times.local[i]+times.transfer[i]))
	}
	rounds.Ratios(b, "recovery-time", "local-restore-and-transfer", ratios...)
	b.ReportMetric(rounds.Median(times.recovery), "s/recovery")
	b.ReportMetric(rounds.Median(times.local), "s/local-restore")
	b.ReportMetric(rounds.Median(times.transfer), "s/transfer")
}

// restoreLatest restores a database in place to the latest moment, and returns how long that took.
func (m *machine) restoreLatest(b *testing.B, id string) time.Duration {
	b.Helper()
	var recovery wire.Recovery
	m.must("GET", "/databases/"+id+"/recovery", nil, &recovery)
	var op wire.Operation
	began := time.Now()
	m.must("POST", "/databases/"+id+"/recovery/restore-request", map[string]any{"target_time": recovery.LatestRestorableTime}, &op)
	for op.Status != wire.OperationCompleted {
		if op.Status == wire.OperationFailed {
			b.Fatalf("the restore failed: %s", deref(op.Error))
		}
		time.Sleep(20 * time.Millisecond) // the API is asked at most so often
		m.must("GET", "/operations/"+op.ID, nil, &op)
	}
	return time.Since(began)
}

// transfer repeats the requests for objects, eight at a time, and returns how long that took and how many bytes came.
func transfer(b *testing.B, server *objectstoretest.Server, bucket string, requests []objectstoretest.Request) (seconds float64, bytes int64) {
	b.Helper()
	store, err := objectstore.Open(b.Context(), "s3://"+bucket+"/home", objectstore.Options{Getenv: server.Environment("").Getenv})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	sizes := make(chan int64, len(requests))
	began := time.Now()
	err = parallel.Do(b.Context(), 8, objectsRead(bucket, requests), func(ctx context.Context, reads <-chan objectRead) error {
		for r := range reads {
			o, err := store.Get(ctx, r.key, r.part)
			if errors.Is(err, objectstore.ErrNotFound) {
				continue // a recovery looks for what follows the log, too
			}
			if err != nil {
				return fmt.Errorf("read %s again: %w", r.key, err)
			}
			n, err := io.Copy(io.Discard, o)
			o.Close()
			if err != nil {
				return err
			}
			sizes <- n
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	seconds = time.Since(began).Seconds()
	close(sizes)
	for n := range sizes {
		bytes += n
	}
	return seconds, bytes
}

// objectRead is a request for an object or a part of it.
type objectRead struct {
	key  string
	part objectstore.Range
}

// objectsRead yields what the requests read of the copy.
func objectsRead(bucket string, requests []objectstoretest.Request) func(func(objectRead) bool) {
	return func(yield func(objectRead) bool) {
		for _, r := range requests {
			path, _, _ := strings.Cut(r.Path, "?")
			key, ok := strings.CutPrefix(path, "/"+bucket+"/home/")
			key, err := url.PathUnescape(key)
			if !ok || err != nil || key == "" || r.Method != http.MethodGet {
				continue
			}
			read := objectRead{key: key}
			var first, last int64
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); err == nil {
				read.part = objectstore.Range{Offset: first, Length: last - first + 1}
			}
			if !yield(read) {
				return
			}
		}
	}
}
