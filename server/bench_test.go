package server

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/objects"
	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

// The benchmarks put the same load on holdfast, in a separate process, and on VersityGW and MinIO if .ci/run has
// installed them, and nginx and Caddy if they are on the PATH, in rounds. Compare only the ratios of one run:
//
//	go test -run '^$' -bench . ./server

// target is a server under load.
type target interface {
	name() string
	address() string
	get(key string) net.Buffers // the request
}

// store also stores objects.
type store interface {
	target
	put(key string, body []byte) net.Buffers
}

func (h *holdfast) name() string    { return "holdfast" }
func (h *holdfast) address() string { return h.host }

func (h *holdfast) put(key string, body []byte) net.Buffers {
	return net.Buffers{fmt.Appendf(nil, "POST /v1/buckets/%s/objects?key=%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n",
		h.bucket, key, h.host, h.key, len(body)), body}
}

func (h *holdfast) get(key string) net.Buffers {
	return net.Buffers{fmt.Appendf(nil, "GET %s%s/%s HTTP/1.1\r\nHost: %s\r\n\r\n", objects.ObjectPath, h.bucket, key, h.host)}
}

// files is nginx or Caddy over a directory.
type files struct{ program, host, dir string }

// logVersion logs a peer's version: that of its module, or the first line of its own output.
func logVersion(b *testing.B, path string, args ...string) {
	b.Helper()
	info, err := buildinfo.ReadFile(path)
	if err == nil && strings.HasPrefix(info.Main.Version, "v") {
		b.Logf("compared with %s %s", filepath.Base(path), info.Main.Version)
		return
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v: %s", path, err, out)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	b.Logf("compared with %s %s", filepath.Base(path), line)
}

// startFiles returns the installed programs.
func startFiles(b *testing.B, programs ...string) (all []*files) {
	b.Helper()
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		logVersion(b, path, map[string]string{"caddy": "version", "nginx": "-v"}[program])
		f := &files{program, freeAddress(b), b.TempDir()}
		if program == "caddy" {
			run(b, exec.Command(path, "file-server", "--root", f.dir, "--listen", f.host))
		} else {
			run(b, exec.Command(path, "-c", f.nginxConfig(b)))
		}
		awaitListener(b, f.host)
		all = append(all, f)
	}
	return all
}

func (f *files) nginxConfig(b *testing.B) string {
	b.Helper()
	if err := os.Chmod(f.dir, 0o755); err != nil {
		b.Fatal(err)
	}
	conf := filepath.Join(f.dir, "nginx.conf")
	text := fmt.Sprintf("user root; daemon off; pid %s/pid; error_log /dev/null; events {} http { access_log off; sendfile on; keepalive_requests 1000000000; server { listen %s; root %s; } }", f.dir, f.host, f.dir)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return conf
}

func (f *files) name() string    { return f.program }
func (f *files) address() string { return f.host }
func (f *files) get(key string) net.Buffers {
	return net.Buffers{fmt.Appendf(nil, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", key, f.host)}
}

func run(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		kill.Stop()
	})
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func awaitListener(b *testing.B, address string) {
	b.Helper()
	testenv.Eventually(b, "a listener on "+address, func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// client has one connection at a time. It copies nothing of a body and parses only the necessary part of a response:
// the CPU time it takes is not available to the servers.
type client struct {
	address string
	conn    net.Conn // nil before the first request, and after the server has closed it
	in      *bufio.Reader
	etag    string // of the last response
	body    []byte // of the last response, if it was short and had a length
}

func newClient(address string) *client {
	return &client{address: address, in: bufio.NewReaderSize(nil, 64<<10), body: make([]byte, 0, 4<<10)}
}

func (c *client) do(request net.Buffers) error {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return err
		}
		c.conn = conn
		c.in.Reset(conn)
	}
	if _, err := request.WriteTo(c.conn); err != nil {
		return err
	}
	return c.answer()
}

// answer reads one response, which must be a success.
func (c *client) answer() error {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	status := string(bytes.TrimSpace(line))
	length, ends, chunked := -1, false, false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, found := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		if !found {
			break
		}
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("Connection")):
			ends = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Etag")):
			c.etag = string(value)
		}
	}
	if length < 0 && !chunked {
		return fmt.Errorf("%s, and no length", status)
	}
	if err := c.readBody(length, chunked); err != nil {
		return err
	}
	if ends {
		c.close()
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return errors.New(status)
	}
	return nil
}

// readBody reads a body to its end. It keeps bodies of at most a few kilobytes.
func (c *client) readBody(length int, chunked bool) error {
	c.body = c.body[:0]
	if chunked {
		_, err := io.Copy(io.Discard, httputil.NewChunkedReader(c.in))
		if err != nil {
			return err
		}
		_, err = c.in.ReadSlice('\n') // the end of the trailer, which is empty
		return err
	}
	if length <= cap(c.body) {
		c.body = c.body[:length]
		_, err := io.ReadFull(c.in, c.body)
		return err
	}
	_, err := c.in.Discard(length)
	return err
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func mustAnswer(b *testing.B, address string, request net.Buffers) {
	b.Helper()
	c := newClient(address)
	defer c.close()
	if err := c.do(request); err != nil {
		b.Fatal(err)
	}
}

func sizeName(size, connections int) string { return fmt.Sprintf("%dKiB-x%d", size>>10, connections) }

// turn is the duration of an arm's load in one round.
const turn = 300 * time.Millisecond

// compare puts the same load on all targets, on the first of them twice, in rounds.
func compare[T target](b *testing.B, size, connections int, all []T, request func(p T, turn string, i int64) net.Buffers) {
	b.Helper()
	what := sizeName(size, connections)
	names, targets := []string{all[0].name(), rounds.Itself}, append([]T{all[0]}, all...)
	for _, p := range all[1:] {
		names = append(names, p.name())
	}
	b.Run(what, func(b *testing.B) {
		c, round := rounds.Compare(names...), 0
		arm := func(n int) rounds.Arm {
			id := fmt.Sprintf("%s-%d-%d", what, round, n)
			return rounds.Arm{Name: names[n], Measure: func() float64 {
				syscall.Sync() // each begins without the others' dirty pages
				return load(b, targets[n].address(), connections, func(i int64) net.Buffers { return request(targets[n], id, i) })
			}}
		}
		for b.Loop() {
			for range rounds.Least {
				arms := make([]rounds.Arm, len(names))
				for n := range arms {
					arms[n] = arm(n)
				}
				c.Round(arms...)
				round++
			}
		}
		b.ReportMetric(rounds.Median(c.Values(names[0]))*float64(size)/1e6, "MB/s")
		for _, name := range names {
			b.ReportMetric(rounds.Median(c.Values(name)), name+"-op/s")
		}
		c.Report(b, "rate")
	})
}

// load sends requests over that many connections for a turn, and returns the number of responses per second.
func load(b *testing.B, address string, connections int, request func(i int64) net.Buffers) float64 {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range connections {
		wg.Go(func() {
			c := newClient(address)
			defer c.close()
			for time.Since(began) < turn {
				if err := c.do(request(next.Add(1))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(next.Load()) / time.Since(began).Seconds()
}

func BenchmarkPut(b *testing.B) {
	h := startHoldfast(b, b.TempDir(), nil)
	stores := []store{h}
	for _, v := range startVersities(b) {
		stores = append(stores, v)
	}
	for _, c := range []struct{ size, connections int }{{1 << 10, 1}, {1 << 10, 8}, {1 << 10, 32}, {64 << 10, 8}, {8 << 20, 8}} {
		body := make([]byte, c.size)
		rand.Read(body)
		compare(b, c.size, c.connections, stores, func(p store, turn string, i int64) net.Buffers {
			return p.put(fmt.Sprintf("%s-%d", turn, i), body)
		})
	}
	reportMemory(b, h.cmd.Process.Pid)
}

func BenchmarkGet(b *testing.B) {
	h := startHoldfast(b, b.TempDir(), nil)
	stores := []store{h}
	for _, v := range startVersities(b) {
		stores = append(stores, v)
	}
	servers := startFiles(b, "nginx", "caddy")
	var all []target
	for _, p := range stores {
		all = append(all, p)
	}
	for _, f := range servers {
		all = append(all, f)
	}
	const keys = 64
	for _, c := range []struct{ size, connections int }{{1 << 10, 1}, {1 << 10, 8}, {64 << 10, 8}, {8 << 20, 8}} {
		body := make([]byte, c.size)
		rand.Read(body)
		name := func(i int64) string { return fmt.Sprintf("get-%d-%d", c.size, i%keys) }
		for i := range int64(keys) {
			for _, p := range stores {
				mustAnswer(b, p.address(), p.put(name(i), body))
			}
			for _, f := range servers {
				if err := os.WriteFile(filepath.Join(f.dir, name(i)), body, 0o644); err != nil {
					b.Fatal(err)
				}
			}
		}
		compare(b, c.size, c.connections, all, func(p target, _ string, i int64) net.Buffers { return p.get(name(i)) })
	}
	reportMemory(b, h.cmd.Process.Pid)
}

// reportMemory logs the peak memory of the process.
func reportMemory(b *testing.B, pid int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	for line := range bytes.Lines(status) {
		if bytes.HasPrefix(line, []byte("VmHWM")) {
			b.Logf("holdfast's peak: %s", bytes.Join(bytes.Fields(line)[1:], []byte(" ")))
		}
	}
}
