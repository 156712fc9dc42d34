package api

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// BenchmarkGet requests records over loopback on eight connections, like a client with keep-alive: authenticated and
// audited. The client is lean, but shares the machine. Allocations are those of server and client together;
// BenchmarkHandler has the server's alone.
func BenchmarkGet(b *testing.B) {
	w := start(b)
	for name, path := range w.benchPaths(b) {
		b.Run(name, func(b *testing.B) { w.benchGet(b, path) })
	}
}

func (w *world) benchPaths(b *testing.B) map[string]string {
	db := w.createDatabase(b, `{"project":"`+w.org.project+`","name":"bench"}`)
	for i := range 10 {
		w.bucket(b, fmt.Sprintf("bucket-%d", i))
	}
	return map[string]string{"database": "/databases/" + db.ID, "10buckets": "/buckets"}
}

func (w *world) benchGet(b *testing.B, path string) {
	const connections = 8
	var mu sync.Mutex
	var all []time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for c := range connections {
		n := b.N / connections
		if c < b.N%connections {
			n++
		}
		group.Go(func() {
			times := w.getMany(b, path, n)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
		})
	}
	group.Wait()
	b.StopTimer()
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

// getMany sends n requests on one connection and returns how long each took.
func (w *world) getMany(b *testing.B, path string, n int) []time.Duration {
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		b.Error(err)
		return nil
	}
	defer conn.Close()
	request := []byte("GET /v1" + path + " HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\nAuthorization: Bearer " + w.org.read + "\r\n\r\n")
	answers := bufio.NewReader(conn)
	times := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		if _, err := conn.Write(request); err != nil {
			b.Error(err)
			return times
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			b.Errorf("%v %v", res, err)
			return times
		}
		if _, err := answers.Discard(int(res.ContentLength)); res.ContentLength < 0 || err != nil {
			b.Errorf("length %d, %v", res.ContentLength, err)
			return times
		}
		times = append(times, time.Since(began))
	}
	return times
}

// BenchmarkAuditCost requests the same record from handlers with and without the audit log, side by side: the ratio
// is the cost of auditing a read.
func BenchmarkAuditCost(b *testing.B) {
	w := start(b)
	path := w.benchPaths(b)["database"]
	h := &handlers{engine: w.engine, baseURL: w.server.URL, now: time.Now}
	unaudited := newRouter(newGate(w.engine, Options{Log: slog.New(slog.DiscardHandler)}))
	unaudited.register(Options{}, []route{
		{"GET", "/databases/{id}", model.ActionDatabaseGet, one(func(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.Database, error) {
			call.Audited = true
			return h.databaseGet(ctx, call, in)
		}), ""},
	})
	audited := w.server.Config.Handler
	for _, round := range []string{"1", "2", "3"} {
		for name, handler := range map[string]http.Handler{"off": unaudited, "on": audited} {
			w.server.Config.Handler = handler
			b.Run(round+"/audit="+name, func(b *testing.B) { w.benchGet(b, path) })
		}
	}
}

// BenchmarkHandler measures the server alone, without a network.
func BenchmarkHandler(b *testing.B) {
	w := start(b)
	for name, path := range w.benchPaths(b) {
		b.Run(name, func(b *testing.B) {
			req := httptest.NewRequest("GET", Prefix+path, nil)
			req.Header.Set("Authorization", "Bearer "+w.org.read)
			handler := w.server.Config.Handler
			b.ReportAllocs()
			for b.Loop() {
				rec := &discard{header: http.Header{}}
				handler.ServeHTTP(rec, req)
				if rec.status != http.StatusOK {
					b.Fatal(rec.status)
				}
			}
		})
	}
}

// BenchmarkGate measures what every request costs before its handler: key, scope, form, audit.
func BenchmarkGate(b *testing.B) {
	w := open(b)
	h := newGate(w.engine, Options{}).Handler(model.OperationFor(model.ActionBucketList), (&form{}).check)
	req := httptest.NewRequest("GET", "/v1/buckets", nil)
	req.Header.Set("Authorization", "Bearer "+w.org.read)
	b.ReportAllocs()
	for b.Loop() {
		rec := &discard{header: http.Header{}}
		h.ServeHTTP(rec, req)
		if rec.status != http.StatusOK {
			b.Fatal(rec.status)
		}
	}
}

// discard is a ResponseWriter that keeps only the status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }
