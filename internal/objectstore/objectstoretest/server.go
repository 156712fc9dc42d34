package objectstoretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// storesVariable names the servers that .ci/run has installed, which must then run.
const storesVariable = "HOLDFAST_STORES"

const (
	rootUser   = "holdfast-tests"
	rootSecret = "holdfast-tests-secret"
)

// Server is an S3 server with an empty store, for one test.
type Server struct {
	Name      string // versitygw or minio
	URL       string // http://127.0.0.1:port
	AccessKey string // of a user who may do everything
	SecretKey string
	binary    string
	dir       string
}

// Servers starts every S3 server that is installed and stops them with the test. A
// test needs at least one where HOLDFAST_STORES names one, and is skipped where none
// is there.
func Servers(t testing.TB) []*Server {
	t.Helper()
	named := strings.Fields(os.Getenv(storesVariable))
	var all []*Server
	for _, name := range []string{"versitygw", "minio"} {
		binary, err := find(name)
		if err == nil {
			all = append(all, start(t, name, binary))
		} else if slices.Contains(named, name) {
			t.Fatalf("%s names %s: %v", storesVariable, name, err)
		}
	}
	if len(all) == 0 {
		t.Skip("no S3 server is installed: .ci/run does it")
	}
	return all
}

// find returns the program of a server: the one .ci/run installed, or one of PATH.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, notHere := os.Stat(filepath.Join(dir, "go.mod")); notHere == nil {
			installed := filepath.Join(dir, "internal/objectstore/testdata/installed", name)
			if _, err := os.Stat(installed); err == nil {
				return installed, nil
			}
		}
		dir = filepath.Dir(dir)
	}
	return exec.LookPath(name)
}

// start runs a server until the test ends.
func start(t testing.TB, name, binary string) *Server {
	t.Helper()
	s := &Server{Name: name, AccessKey: rootUser, SecretKey: rootSecret, binary: binary, dir: t.TempDir()}
	address := freeAddress(t)
	s.URL = "http://" + address
	var log strings.Builder
	cmd := s.command(t, address)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() { exited <- cmd.Wait() })
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		waiting.Wait()
		if t.Failed() && log.Len() > 0 {
			t.Logf("%s: %s", name, log.String()[max(0, log.Len()-4000):])
		}
	})
	if err := s.await(exited); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	return s
}

func (s *Server) command(t testing.TB, address string) *exec.Cmd {
	t.Helper()
	data, versions, users := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "versions"), filepath.Join(s.dir, "users")
	for _, d := range []string{data, versions, users} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var cmd *exec.Cmd
	if s.Name == "minio" {
		cmd = exec.Command(s.binary, "server", "--quiet", "--address", address, "--console-address", freeAddress(t), data)
		cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+s.AccessKey, "MINIO_ROOT_PASSWORD="+s.SecretKey, "MINIO_UPDATE=off", "MINIO_CI_CD=1")
	} else {
		cmd = exec.Command(s.binary, "--port", address, "--access", s.AccessKey, "--secret", s.SecretKey, "--iam-dir", users, "--quiet", "--keep-alive",
			"posix", "--versioning-dir", versions, data)
	}
	cmd.Dir = s.dir
	return cmd
}

// await returns when the server lists buckets.
func (s *Server) await(exited <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := s.admin().ListBuckets(ctx)
		if err == nil {
			return nil
		}
		select {
		case exit := <-exited:
			return fmt.Errorf("it exited: %w", exit)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// admin returns a client that may do everything.
func (s *Server) admin() *minio.Client {
	c, err := minio.New(strings.TrimPrefix(s.URL, "http://"), &minio.Options{
		Creds:  credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""),
		Region: "us-east-1", MaxRetries: 1,
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	if err != nil {
		panic(err) // the URL is this package's
	}
	return c
}

// Bucket makes a bucket, with Object Lock or without, and returns its name.
func (s *Server) Bucket(t testing.TB, locked bool) string {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", time.Now().UnixNano())
	if err := s.admin().MakeBucket(t.Context(), name, minio.MakeBucketOptions{ObjectLocking: locked}); err != nil {
		t.Fatalf("make a bucket in %s: %v", s.Name, err)
	}
	return name
}

// Hide deletes all objects of a bucket as other programs do: where the bucket has versions, by delete markers.
func (s *Server) Hide(t testing.TB, bucket string) {
	t.Helper()
	c := s.admin()
	for o := range c.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Recursive: true}) {
		if err := cmp.Or(o.Err, c.RemoveObject(t.Context(), bucket, o.Key, minio.RemoveObjectOptions{})); err != nil {
			t.Fatalf("delete an object of %s: %v", s.Name, err)
		}
	}
}

// Unhide removes all delete markers of a bucket.
func (s *Server) Unhide(t testing.TB, bucket string) {
	t.Helper()
	c := s.admin()
	for o := range c.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
		if o.Err == nil && !o.IsDeleteMarker {
			continue
		}
		if err := cmp.Or(o.Err, c.RemoveObject(t.Context(), bucket, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID})); err != nil {
			t.Fatalf("remove a delete marker of %s: %v", s.Name, err)
		}
	}
}

// RemoveBucket removes an empty bucket.
func (s *Server) RemoveBucket(t testing.TB, name string) {
	t.Helper()
	if err := s.admin().RemoveBucket(t.Context(), name); err != nil {
		t.Fatalf("remove a bucket from %s: %v", s.Name, err)
	}
}

// Environment returns the variables that lead to the server, with its credentials,
// by another URL unless that is empty.
func (s *Server) Environment(url string) Environment {
	if url == "" {
		url = s.URL
	}
	return Environment{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey,
	}
}

// Environment is variables for objectstore.Options.Getenv and for commands.
type Environment map[string]string

// Getenv returns the value of a variable.
func (e Environment) Getenv(name string) string { return e[name] }

// With returns the environment with another value of a variable.
func (e Environment) With(name, value string) Environment {
	changed := Environment{name: value}
	for n, v := range e {
		if n != name {
			changed[n] = v
		}
	}
	return changed
}
