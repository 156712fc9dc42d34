package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// s3Bucket is the bucket of every S3 server.
const s3Bucket = "files"

// s3Server is a server of the S3 protocol, reached by signed requests.
type s3Server struct {
	called, host   string
	access, secret string
	pid            int
	keys           sync.Map // by day
}

func (v *s3Server) name() string    { return v.called }
func (v *s3Server) address() string { return v.host }

func (v *s3Server) put(key string, body []byte) net.Buffers {
	return v.sign("PUT", "/"+s3Bucket+"/"+key, "", body)
}

func (v *s3Server) get(key string) net.Buffers { return v.sign("GET", "/"+s3Bucket+"/"+key, "", nil) }

// sign signs a request by AWS Signature Version 4, with an unsigned body. The parameters of query are in order.
func (v *s3Server) sign(method, path, query string, body []byte) net.Buffers {
	now := time.Now().UTC()
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	scope := day + "/us-east-1/s3/aws4_request"
	const names = "host;x-amz-content-sha256;x-amz-date"
	canonical := method + "\n" + path + "\n" + query + "\nhost:" + v.host + "\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:" + stamp + "\n\n" + names + "\nUNSIGNED-PAYLOAD"
	sum := sha256.Sum256([]byte(canonical))
	signature := hex.EncodeToString(hmacOf(v.signingKey(day), "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hex.EncodeToString(sum[:])))
	if query != "" {
		path += "?" + query
	}
	return net.Buffers{fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\nX-Amz-Date: %s\r\nAuthorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s\r\nContent-Length: %d\r\n\r\n",
		method, path, v.host, stamp, v.access, scope, names, signature, len(body)), body}
}

// signingKey returns the key that signs the requests of a day. Like the clients that people use, this one derives it once.
func (v *s3Server) signingKey(day string) []byte {
	key, _ := v.keys.LoadOrStore(day, sync.OnceValue(func() []byte {
		key := []byte("AWS4" + v.secret)
		for _, part := range []string{day, "us-east-1", "s3", "aws4_request"} {
			key = hmacOf(key, part)
		}
		return key
	}))
	return key.(func() []byte)()
}

func hmacOf(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// parameters returns a query that can be signed.
func parameters(pairs ...string) string {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// startS3 returns the S3 endpoint of holdfast, with a bucket.
func (h *holdfast) startS3(b *testing.B) *s3Server {
	b.Helper()
	var access struct {
		ID     string `json:"access_key_id"`
		Secret string `json:"secret_access_key"`
	}
	h.api(b, "GET", "/account/storage-credentials", "", &access)
	return &s3Server{called: "holdfast-s3", host: h.s3, access: access.ID, secret: access.Secret, pid: h.cmd.Process.Pid}
}

// peer returns the path of a program that .ci/run installs, or that is on the PATH, "" if there is none.
func peer(b *testing.B, program string) string {
	b.Helper()
	path, err := filepath.Abs("../internal/objectstore/testdata/installed/" + program)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	path, _ = exec.LookPath(program)
	return path
}

// startVersities returns VersityGW with its defaults, which close the connection after each response, and with
// keep-alive.
func startVersities(b *testing.B) []*s3Server {
	b.Helper()
	path := peer(b, "versitygw")
	if path == "" {
		return nil
	}
	logVersion(b, path, "--version")
	return []*s3Server{startVersity(b, path, "versitygw"), startVersity(b, path, "versitygw-keep-alive", "--keep-alive")}
}

func startVersity(b *testing.B, path, name string, args ...string) *s3Server {
	b.Helper()
	v := &s3Server{called: name, host: freeAddress(b), access: "bench", secret: "benchsecret"}
	args = append([]string{"--access", v.access, "--secret", v.secret, "--port", v.host, "--quiet"}, args...)
	v.start(b, exec.Command(path, append(args, "posix", b.TempDir())...))
	return v
}

// startMinio returns MinIO, or nothing if it is not installed.
func startMinio(b *testing.B) []*s3Server {
	b.Helper()
	path := peer(b, "minio")
	if path == "" {
		return nil
	}
	logVersion(b, path, "--version")
	v := &s3Server{called: "minio", host: freeAddress(b), access: "bench", secret: "benchsecret"}
	cmd := exec.Command(path, "server", "--quiet", "--address", v.host, b.TempDir())
	cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+v.access, "MINIO_ROOT_PASSWORD="+v.secret, "MINIO_BROWSER=off", "MINIO_UPDATE=off")
	v.start(b, cmd)
	return []*s3Server{v}
}

// start starts the server and makes its bucket.
func (v *s3Server) start(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	run(b, cmd)
	v.pid = cmd.Process.Pid
	awaitListener(b, v.host)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // MinIO listens before it serves
		c := newClient(v.host)
		err := c.do(v.sign("PUT", "/"+s3Bucket, "", nil))
		c.close()
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			b.Fatal(err)
		}
	}
}

// cpuTime returns the processor time that a process has used.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, n := range []int{11, 12} { // utime and stime, after the name and the state
		t, err := strconv.Atoi(fields[n])
		if err != nil {
			b.Fatal(err)
		}
		ticks += t
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}
