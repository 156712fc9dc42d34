package server

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/rounds"
)

// The benchmarks of S3 put the same signed requests on holdfast, VersityGW and MinIO, and what they ask for on
// holdfast's own API, on a second appliance. Compare only the ratios of one run:
//
//	go test -run '^$' -bench '^BenchmarkS3' ./server

// jsonAPI is the name of the arm that uses holdfast's own API.
const jsonAPI = "holdfast-api"

// apiStore is holdfast by its own API. What it serves is signed too: a private bucket's objects, by their download URLs.
type apiStore struct {
	*holdfast
	downloads map[string]string // the URL of each key's object, without the origin
}

func (apiStore) name() string { return jsonAPI }

func (a apiStore) get(key string) net.Buffers {
	return net.Buffers{fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", a.downloads[key], a.host)}
}

// startAPI returns holdfast with a private bucket.
func startAPI(b *testing.B) apiStore {
	b.Helper()
	h := startHoldfast(b, b.TempDir(), nil)
	h.api(b, "PATCH", "/buckets/"+h.bucket, `{"public":false}`, nil)
	return apiStore{h, map[string]string{}}
}

// findDownload has get serve an object that exists.
func (a apiStore) findDownload(b *testing.B, key string) {
	b.Helper()
	var object struct {
		URL string `json:"download_url"`
	}
	a.api(b, "GET", "/buckets/"+a.bucket+"/objects/"+key, "", &object)
	a.downloads[key] = strings.TrimPrefix(object.URL, "http://"+a.host)
}

// startStores returns holdfast's S3 endpoint first, holdfast's own API, and the peers.
func startStores(b *testing.B) (h *holdfast, all []store) {
	b.Helper()
	h = startHoldfast(b, b.TempDir(), nil)
	all = []store{h.startS3(b), startAPI(b)}
	for _, v := range append(startVersities(b), startMinio(b)...) {
		all = append(all, v)
	}
	return h, all
}

func BenchmarkS3Put(b *testing.B) {
	h, stores := startStores(b)
	for _, c := range []struct{ size, connections int }{{1 << 10, 1}, {1 << 10, 8}, {1 << 10, 32}, {64 << 10, 8}, {8 << 20, 8}} {
		body := make([]byte, c.size)
		rand.Read(body)
		compare(b, c.size, c.connections, stores, func(p store, turn string, i int64) net.Buffers {
			return p.put(fmt.Sprintf("%s-%d", turn, i), body)
		})
	}
	reportMemory(b, h.cmd.Process.Pid)
}

func BenchmarkS3Get(b *testing.B) {
	h, stores := startStores(b)
	const keys = 64
	for _, c := range []struct{ size, connections int }{{1 << 10, 1}, {1 << 10, 8}, {1 << 10, 32}, {64 << 10, 8}, {8 << 20, 8}} {
		body := make([]byte, c.size)
		rand.Read(body)
		name := func(i int64) string { return fmt.Sprintf("get-%d-%d", c.size, i%keys) }
		for i := range int64(keys) {
			for _, p := range stores {
				mustAnswer(b, p.address(), p.put(name(i), body))
				if a, ok := p.(apiStore); ok {
					a.findDownload(b, name(i))
				}
			}
		}
		compare(b, c.size, c.connections, stores, func(p store, _ string, i int64) net.Buffers { return p.get(name(i)) })
	}
	reportMemory(b, h.cmd.Process.Pid)
}

// BenchmarkS3CPU measures the processor time that servers use for a PUT and a GET of 1 KiB, on 8 connections.
func BenchmarkS3CPU(b *testing.B) {
	_, stores := startStores(b)
	body := make([]byte, 1<<10)
	rand.Read(body)
	for _, p := range stores {
		mustAnswer(b, p.address(), p.put("get", body))
		if a, ok := p.(apiStore); ok {
			a.findDownload(b, "get")
		}
	}
	compareCPU(b, "put-1KiB-x8", stores, func(p store, turn string, i int64) net.Buffers {
		return p.put(fmt.Sprintf("cpu-%s-%d", turn, i), body)
	})
	compareCPU(b, "get-1KiB-x8", stores, func(p store, _ string, _ int64) net.Buffers { return p.get("get") })
}

// compareCPU puts the same load on all stores, on the first of them twice, in rounds.
func compareCPU(b *testing.B, what string, stores []store, request func(p store, turn string, i int64) net.Buffers) {
	b.Helper()
	names, targets := armsOf(stores)
	b.Run(what, func(b *testing.B) {
		c, round := rounds.Compare(names...), 0
		for b.Loop() {
			for range rounds.Least {
				c.Round(armsFor(names, func(n int) float64 {
					pid := pidOf(targets[n])
					before := cpuTime(b, pid)
					var requests atomic.Int64
					load(b, targets[n].address(), 8, func(i int64) net.Buffers {
						requests.Store(max(i, requests.Load()))
						return request(targets[n], fmt.Sprintf("%d-%d", round, n), i)
					})
					return float64((cpuTime(b, pid) - before).Microseconds()) / float64(requests.Load())
				})...)
				round++
			}
		}
		for _, name := range names {
			b.ReportMetric(rounds.Median(c.Values(name)), name+"-µs/op")
		}
		c.Report(b, "processor-time")
	})
}

func pidOf(s store) int {
	switch s := s.(type) {
	case *s3Server:
		return s.pid
	case apiStore:
		return s.cmd.Process.Pid
	}
	panic("not a process")
}

// armsOf returns the names and targets of a comparison, in which the first target is measured twice.
func armsOf(stores []store) (names []string, targets []store) {
	names, targets = []string{stores[0].name(), rounds.Itself}, append([]store{stores[0]}, stores...)
	for _, p := range stores[1:] {
		names = append(names, p.name())
	}
	return names, targets
}

// armsFor returns the arms of a round.
func armsFor(names []string, measure func(n int) float64) []rounds.Arm {
	arms := make([]rounds.Arm, len(names))
	for n := range arms {
		arms[n] = rounds.Arm{Name: names[n], Measure: func() float64 { return measure(n) }}
	}
	return arms
}

// s3Only leaves out the API, which has no such request.
func s3Only(stores []store) (all []store) {
	for _, s := range stores {
		if s.name() != jsonAPI {
			all = append(all, s)
		}
	}
	return all
}

// listed is the number of objects of the bucket that is listed.
const listed = 100_000

// BenchmarkS3List lists a bucket of 100,000 objects, in pages of 1000. The API lists newest first, 100 at a time, so it
// is not compared.
func BenchmarkS3List(b *testing.B) {
	_, stores := startStores(b)
	stores = s3Only(stores)
	key := func(i int) string { return fmt.Sprintf("folder/%06d", i) }
	for _, p := range stores {
		fill(b, p, key)
	}
	names, targets := armsOf(stores)
	b.Run("100000", func(b *testing.B) {
		c := rounds.Compare(names...)
		for b.Loop() {
			for range rounds.Least {
				c.Round(armsFor(names, func(n int) float64 {
					v := targets[n].(*s3Server)
					client := newClient(v.host)
					defer client.close()
					began := time.Now()
					for after := "folder/"; ; {
						if err := client.do(v.sign("GET", "/"+s3Bucket, parameters("list-type", "2", "start-after", after), nil)); err != nil {
							b.Fatal(err)
						}
						if after == "folder/" {
							after = key(999)
						} else if i, _ := strconv.Atoi(after[len("folder/"):]); i+1000 < listed {
							after = key(i + 1000)
						} else {
							return time.Since(began).Seconds()
						}
					}
				})...)
			}
		}
		for _, name := range names {
			b.ReportMetric(rounds.Median(c.Values(name)), name+"-s")
		}
		c.Report(b, "time")
	})
}

// fill stores small objects over 32 connections.
func fill(b *testing.B, p store, key func(int) string) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			c := newClient(p.address())
			defer c.close()
			for i := int(next.Add(1)) - 1; i < listed; i = int(next.Add(1)) - 1 {
				if err := c.do(p.put(key(i), []byte("x"))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkS3Multipart uploads 1 GiB in parts of 16 MiB on four connections, and as one body by the API.
func BenchmarkS3Multipart(b *testing.B) {
	_, stores := startStores(b)
	part := make([]byte, 16<<20)
	rand.Read(part)
	names, targets := armsOf(stores)
	b.Run("1GiB", func(b *testing.B) {
		c := rounds.Compare(names...)
		for b.Loop() {
			for range rounds.Least {
				c.Round(armsFor(names, func(n int) float64 {
					key := fmt.Sprintf("large-%d", n) // replaces that of the round before
					syscall.Sync()
					began := time.Now()
					var err error
					if v, ok := targets[n].(*s3Server); ok {
						err = v.multipart(key, part, 64)
					} else {
						err = uploadWhole(targets[n].(apiStore), key, part, 64)
					}
					if err != nil {
						b.Fatal(err)
					}
					return time.Since(began).Seconds()
				})...)
			}
		}
		for _, name := range names {
			b.ReportMetric(rounds.Median(c.Values(name)), name+"-s")
		}
		c.Report(b, "time")
	})
}

// multipart uploads an object of that many equal parts.
func (v *s3Server) multipart(key string, part []byte, parts int) error {
	path := "/" + s3Bucket + "/" + key
	c := newClient(v.host)
	defer c.close()
	if err := c.do(v.sign("POST", path, "uploads=", nil)); err != nil {
		return fmt.Errorf("create the upload: %w", err)
	}
	_, rest, _ := bytes.Cut(c.body, []byte("<UploadId>"))
	id, _, found := bytes.Cut(rest, []byte("</UploadId>"))
	if !found {
		return fmt.Errorf("no upload id in %s", c.body)
	}
	upload := string(id)
	tags, failed := make([]string, parts), make([]error, 4)
	var wg sync.WaitGroup
	for n := range failed {
		wg.Go(func() {
			c := newClient(v.host)
			defer c.close()
			for i := n; i < parts && failed[n] == nil; i += len(failed) {
				failed[n] = c.do(v.sign("PUT", path, parameters("partNumber", strconv.Itoa(i+1), "uploadId", upload), part))
				tags[i] = c.etag
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return fmt.Errorf("upload a part: %w", err)
		}
	}
	var list bytes.Buffer
	list.WriteString("<CompleteMultipartUpload>")
	for i, tag := range tags {
		fmt.Fprintf(&list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, tag)
	}
	list.WriteString("</CompleteMultipartUpload>")
	if err := c.do(v.sign("POST", path, parameters("uploadId", upload), list.Bytes())); err != nil {
		return fmt.Errorf("complete the upload: %w", err)
	}
	if bytes.Contains(c.body, []byte("<Error>")) {
		return fmt.Errorf("complete the upload: %s", c.body)
	}
	return nil
}

// uploadWhole uploads an object of that many equal parts as one body.
func uploadWhole(a apiStore, key string, part []byte, parts int) error {
	request := a.put(key, part)
	request[0] = bytes.Replace(request[0], fmt.Appendf(nil, "Content-Length: %d", len(part)), fmt.Appendf(nil, "Content-Length: %d", len(part)*parts), 1)
	for range parts - 1 {
		request = append(request, part)
	}
	c := newClient(a.address())
	defer c.close()
	return c.do(request)
}
