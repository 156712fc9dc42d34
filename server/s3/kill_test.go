package s3

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	minioc "github.com/minio/minio-go/v7/pkg/credentials"

	"holdfast/engine"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// serveDir, when set, makes this test binary an endpoint on that directory that can be killed.
const serveDir = "HOLDFAST_S3_SERVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve serves until its standard input ends. It prints its address, and at the first start the first key's credentials.
func serve(dir string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e, err := engine.Open(core.Config{DataDir: dir, MaxObjectBytes: 1 << 30, AuditKeep: 1_000_000, Log: log})
	if err != nil {
		return err
	}
	defer e.Close(context.Background())
	if err := e.Objects.RecoverUploads(false); err != nil {
		return err
	}
	first, err := e.Access.Initialize(true)
	if err != nil {
		return err
	}
	id, secret := "-", "-"
	if first != nil {
		key, err := e.Core.Meta.CachedKey(model.HashKey(first.Key.Reveal()))
		if err != nil {
			return err
		}
		id, secret = key.ID, e.Access.S3Secret(key.ID).Reveal()
		call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: key.Organization}
		if _, err := e.Access.KeyAllowDangerous(call, key.ID, true); err != nil {
			return err
		}
		if err := e.Access.KeyShown(); err != nil {
			return err
		}
	}
	server := httptest.NewServer(New(e, Options{Log: log}))
	defer server.Close()
	fmt.Println(strings.TrimPrefix(server.URL, "http://"), id, secret)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// process is an endpoint in a process of its own.
type process struct {
	host        string
	credentials credentials
	cmd         *exec.Cmd
}

func start(t *testing.T, dir string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveDir+"="+dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p := process{cmd: cmd}
	if _, err := fmt.Sscan(line, &p.host, &p.credentials.id, &p.credentials.secret); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p process) core(t testing.TB, c credentials) minio.Core {
	t.Helper()
	client, err := minio.NewCore(p.host, &minio.Options{Creds: minioc.NewStaticV4(c.id, c.secret, ""), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return *client
}

// sent is what a client was told of one multipart upload.
type sent struct {
	key, id  string
	seed     uint64
	parts    []minio.CompletePart // acknowledged
	complete bool                 // acknowledged
}

// partSize is the size of a part that need not be the last.
const partSize = 5 << 20

// TestKillDuringMultipart kills the process while clients upload in parts: every part and object that was acknowledged
// is there, and no object is incomplete.
func TestKillDuringMultipart(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	p := start(t, dir)
	c := p.credentials
	if err := p.core(t, c).MakeBucket(ctx, "photos", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	var all []*sent
	for round := range 3 {
		if round > 0 {
			p = start(t, dir)
		}
		all = append(all, p.load(t, c, round)...)
		p = start(t, dir)
		p.check(t, c, all)
		_, _ = p.cmd.Process.Kill(), p.cmd.Wait()
	}
}

// load uploads until the process is killed.
func (p process) load(t *testing.T, c credentials, round int) (all []*sent) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	var completed atomic.Int64
	ctx, client := context.Background(), p.core(t, c)
	for n := range 4 {
		clients.Go(func() {
			for i := 0; ; i++ {
				s := &sent{key: fmt.Sprintf("%d/%d/%d", round, n, i), seed: uint64(round*1000 + n*100 + i)}
				var err error
				if s.id, err = client.NewMultipartUpload(ctx, "photos", s.key, minio.PutObjectOptions{}); err != nil {
					return
				}
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
				for number, size := range []int{partSize, 100_000} {
					data := random(s.seed+uint64(number), size)
					part, err := client.PutObjectPart(ctx, "photos", s.key, s.id, number+1, bytes.NewReader(data), int64(size), minio.PutObjectPartOptions{})
					if err != nil {
						return
					}
					s.parts = append(s.parts, minio.CompletePart{PartNumber: number + 1, ETag: part.ETag})
				}
				if _, err := client.CompleteMultipartUpload(ctx, "photos", s.key, s.id, s.parts, minio.PutObjectOptions{}); err != nil {
					return
				}
				s.complete = true
				completed.Add(1)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); completed.Load() < 5 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait()
	clients.Wait()
	return all
}

// check compares what is stored with what clients were told.
func (p process) check(t *testing.T, c credentials, all []*sent) {
	ctx, client := context.Background(), p.core(t, c)
	complete, parts := 0, 0
	for _, s := range all {
		want := append(random(s.seed, partSize), random(s.seed+1, 100_000)...)
		got, err := read(ctx, client, s.key)
		switch {
		case err == nil && !bytes.Equal(got, want):
			t.Errorf("%s has %d other bytes", s.key, len(got))
		case err != nil && s.complete:
			t.Errorf("%s was acknowledged: %v", s.key, err)
		case err == nil:
			complete++
			continue
		}
		listed, err := client.ListObjectParts(ctx, "photos", s.key, s.id, 0, 10)
		if err != nil {
			t.Errorf("%s: its parts: %v", s.key, err)
			continue
		}
		for _, part := range s.parts {
			if stored := listed.ObjectParts; len(stored) < part.PartNumber || strings.Trim(stored[part.PartNumber-1].ETag, `"`) != part.ETag {
				t.Errorf("%s: part %d was acknowledged: %+v", s.key, part.PartNumber, stored)
			}
			parts++
		}
		if len(s.parts) < 2 {
			continue
		}
		if _, err := client.CompleteMultipartUpload(ctx, "photos", s.key, s.id, s.parts, minio.PutObjectOptions{}); err != nil {
			t.Errorf("%s cannot be completed: %v", s.key, err)
		} else if got, err := read(ctx, client, s.key); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is wrong after it was completed: %v", s.key, err)
		}
	}
	t.Logf("%d objects are complete, %d parts of others were kept", complete, parts)
}

func read(ctx context.Context, client minio.Core, key string) ([]byte, error) {
	got, _, _, err := client.GetObject(ctx, "photos", key, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer got.Close()
	data, err := io.ReadAll(got)
	if response, ok := errors.AsType[minio.ErrorResponse](err); ok && response.StatusCode == http.StatusNotFound {
		return nil, err
	}
	return data, err
}
