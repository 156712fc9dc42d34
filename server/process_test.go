package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"holdfast/engine"
	"holdfast/engine/core"
	"holdfast/server/s3"
)

// serveDir, when set, makes this test binary a server of that directory that can be killed, and that is measured
// apart from its load.
const serveDir = "HOLDFAST_SERVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		if err := serveObjects(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveObjects serves until its standard input ends.
func serveObjects(dir string) error {
	TuneRuntime(false) // as the command does
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e, err := engine.Open(core.Config{DataDir: dir, MaxObjectBytes: 1 << 30, AuditKeep: 1_000_000, Log: log})
	if err != nil {
		return err
	}
	defer e.Close(context.Background())
	first, err := e.Access.Initialize(true)
	if err != nil {
		return err
	}
	key := "-" // shown only at the first start
	if first != nil {
		key = first.Key.Reveal()
		if err := e.Access.KeyShown(); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	base := "http://" + listener.Addr().String()
	handler, err := newHandler(e, Options{BaseURL: base, Log: log})
	if err != nil {
		return err
	}
	srv := newHTTPServer(handler, Timeouts{}.orDefaults(), log)
	go srv.Serve(listener)
	s3Listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s3Server := newHTTPServer(s3.New(e, s3.Options{URL: "http://" + s3Listener.Addr().String(), Log: log}), Timeouts{}.orDefaults(), log)
	go s3Server.Serve(s3Listener)
	defer s3Server.Close()
	fmt.Println(base, s3Listener.Addr(), key)
	io.Copy(io.Discard, os.Stdin)
	return srv.Close()
}

// holdfast is this program in a separate process.
type holdfast struct {
	host, key, bucket string
	s3                string // the host of the S3 endpoint
	cmd               *exec.Cmd
	stdin             io.Closer
}

// startHoldfast serves the directory dir until the test ends. The first start creates the key and the bucket; later
// starts reuse them.
func startHoldfast(tb testing.TB, dir string, before *holdfast) *holdfast {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	h := &holdfast{cmd: cmd, stdin: stdin}
	tb.Cleanup(h.stop)
	var base, key string
	if _, err := fmt.Fscan(stdout, &base, &h.s3, &key); err != nil {
		tb.Fatalf("start: %v", err)
	}
	h.host = strings.TrimPrefix(base, "http://")
	if before != nil {
		h.key, h.bucket = before.key, before.bucket
		return h
	}
	h.key = key
	var status struct{ Projects []struct{ ID string } }
	h.api(tb, "GET", "/agent/status", "", &status)
	var bucket struct{ ID string }
	h.api(tb, "POST", "/buckets", `{"project":"`+status.Projects[0].ID+`","name":"files","public":true}`, &bucket)
	h.bucket = bucket.ID
	return h
}

func (h *holdfast) stop() {
	h.stdin.Close()
	h.cmd.Wait()
}

func (h *holdfast) kill() {
	h.cmd.Process.Kill()
	h.cmd.Wait()
}

func (h *holdfast) api(tb testing.TB, method, path, body string, data any) {
	tb.Helper()
	r, err := http.NewRequest(method, "http://"+h.host+"/v1"+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if err := json.Unmarshal(text, &struct{ Data any }{data}); err != nil || answer.StatusCode != http.StatusOK {
		tb.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
	}
}
