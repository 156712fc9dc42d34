package cli_test

import (
	"context"
	"encoding/json"
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
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// BenchmarkOffsiteRecovery recovers a database of 1.6 GB from an S3 server on an empty directory, and compares the time until it
// is available with that of a restore of the same backup and WAL from the recovered disk, right after it, together with that of the
// transfer: the requests that a recovery makes of the store, made again by the client alone. An age identity opens the copy: a
// passphrase takes half a second more by design, whatever the size.
func BenchmarkOffsiteRecovery(b *testing.B) {
	old := newMachine(b)
	server := objectstoretest.Servers(b)[0]
	proxy := objectstoretest.NewProxy(b, server.URL)
	bucket := server.Bucket(b, false)
	env := func(url string) (all []string) {
		for name, value := range server.Environment(url) {
			all = append(all, name+"="+value)
		}
		return all
	}
	base := old.env
	old.env = slices.Concat(base, env(""))
	c := old.prepare(newIdentity(b, "s3://"+bucket+"/home"))
	quiet := []string{"--backup-interval", "0", "--no-verification"}
	old.start(append(c.serveFlags(), quiet...)...)
	shop := old.createDatabase("bench")
	n := &benchedMachine{old, old.connectionURL(shop.ID)}
	n.pgbench(b, "-i", "-q", "-s", "107")
	old.backup(shop.ID)
	n.pgbench(b, "-n", "-c", "4", "-t", "2000") // log to replay
	old.awaitCopied()
	at := append(quiet, "--at", time.Now().UTC().Format(time.RFC3339Nano)) // and not what later recoveries add to the copy
	old.awaitCopied()
	old.killAll()
	var times struct{ recovery, local, transfer []float64 }
	for b.Loop() {
		var requests []objectstoretest.Request
		for round := range 8 {
			fresh := old.elsewhere()
			fresh.env = slices.Concat(base, env(""))
			if round == 0 {
				fresh.env = slices.Concat(base, env(proxy.URL))
			}
			began := time.Now()
			fresh.recoverFrom(c, at...)
			fresh.awaitRebuilt(shop.ID)
			took := time.Since(began).Seconds()
			fresh.mustHaveHistory(b, shop.ID)
			if round == 0 { // to learn what a recovery reads
				requests = proxy.Requests()
			} else {
				fresh.awaitCopied()
				times.recovery = append(times.recovery, took)
				times.local = append(times.local, fresh.restore(b, shop.ID, fresh.lastCommit()).Seconds())
				fresh.mustHaveHistory(b, shop.ID)
			}
			fresh.killAll()
			if err := os.RemoveAll(fresh.dataDir); err != nil {
				b.Fatal(err)
			}
			if round > 0 {
				seconds, bytes := transfer(b, server, bucket, requests)
				times.transfer = append(times.transfer, seconds)
				b.ReportMetric(float64(bytes)/1e6, "MB-read")
			}
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

// askEvery is how often the API is asked how far the work is: more often takes processor time from it.
const askEvery = 20 * time.Millisecond

// awaitRebuilt waits until the database is available.
func (m *machine) awaitRebuilt(id string) {
	m.t.Helper()
	var db database
	for began := time.Now(); db.Status != "available"; time.Sleep(askEvery) {
		if m.must("GET", "/databases/"+id, nil, &db); time.Since(began) > 5*time.Minute {
			m.t.Fatalf("the database is %s after five minutes", db.Status)
		}
	}
}

// lastCommit returns the time of the last commit of the database that was recovered.
func (m *machine) lastCommit() time.Time {
	var status wire.Offsite
	m.must("GET", "/account/offsite", nil, &status)
	return *status.Recovery.Databases[0].LastCommitAt
}

// mustHaveHistory fails unless all transactions of the benchmark are there.
func (m *machine) mustHaveHistory(b *testing.B, id string) {
	b.Helper()
	if got := query(b, m.connectionURL(id), "select count(*) from pgbench_history"); got != "8000" {
		b.Fatalf("%s of 8000 transactions are there", got)
	}
}

// restore restores a database in place to a moment, once nothing else is done with it, and returns how long that took.
func (m *machine) restore(b *testing.B, id string, to time.Time) time.Duration {
	b.Helper()
	var op wire.Operation
	var began time.Time
	testenv.Eventually(b, "the database to be free", func() bool {
		began = time.Now()
		status, answer := m.do("POST", "/databases/"+id+"/recovery/restore-request", map[string]any{"target_time": to})
		if status == http.StatusConflict { // its backup after the recovery
			return false
		}
		if err := json.Unmarshal(answer.Data, &op); err != nil || status != http.StatusOK {
			b.Fatalf("restore: %d %+v %v", status, answer.Error, err)
		}
		return true
	})
	for op.Status != wire.OperationCompleted {
		if op.Status == wire.OperationFailed {
			b.Fatalf("the restore failed: %s", deref(op.Error))
		}
		time.Sleep(askEvery)
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
