package cli_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// tierFlags bound what large objects take to a few of those of the test.
var tierFlags = []string{"--objects-local-size", "2000000", "--objects-offsite-above", "100000"}

// awayObjects returns what the API says of objects that are in the copy only.
func (m *machine) awayObjects() (away, localBytes int64) {
	m.t.Helper()
	var copied struct {
		Objects struct {
			Away       int64
			LocalBytes int64 `json:"local_bytes"`
		}
	}
	m.must("GET", "/account/offsite", nil, &copied)
	return copied.Objects.Away, copied.Objects.LocalBytes
}

// awayContent is an object of half a megabyte.
func awayContent(n int) string { return strings.Repeat(fmt.Sprintf("away %06d ", n), 40_000) }

func (m *machine) putAway(bucket string, n int) {
	m.t.Helper()
	request, err := http.NewRequest("POST", fmt.Sprintf("%s/buckets/%s/objects?key=a%d", m.api, bucket, n), strings.NewReader(awayContent(n)))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		m.t.Fatalf("upload of a%d: %s", n, answer.Status)
	}
}

// download requests an object with a method and a range, "" for all of it.
func (m *machine) download(bucket, key, method, span string) (*http.Response, string) {
	m.t.Helper()
	var object struct {
		URL string `json:"download_url"`
	}
	m.must("GET", fmt.Sprintf("/buckets/%s/objects/%s", bucket, key), nil, &object)
	request, err := http.NewRequest(method, object.URL, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	if span != "" {
		request.Header.Set("Range", "bytes="+span)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer, string(body)
}

// TestObjectsAway: with more objects than may be on the disk, an appliance that is killed again and again keeps all of them,
// and so does the one that is recovered from its copy.
func TestObjectsAway(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	c := m.prepareBucket(t)
	flags := append(c.serveFlags(), tierFlags...)
	m.start(flags...)
	bucket := m.createBucket("files")
	objects := 0
	for range 3 {
		for range 8 {
			m.putAway(bucket, objects)
			objects++
		}
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Millisecond) // while some leave
		m.killAll()
		m.start(flags...)
		m.holdsAway(bucket, objects)
	}
	testenv.Within(t, 2*time.Minute, "objects to leave", func() bool {
		away, local := m.awayObjects()
		return away > 0 && local <= 2_000_000
	})
	m.holdsAway(bucket, objects)
	m.awaitCopied()
	m.killAll()
	if err := os.RemoveAll(m.dataDir); err != nil {
		t.Fatal(err)
	}
	fresh := m.elsewhere()
	fresh.env = m.env
	fresh.recoverFrom(c, tierFlags...)
	fresh.holdsAway(bucket, objects)
}

// holdsAway compares all objects with what was uploaded, whole, in ranges and by HEAD.
func (m *machine) holdsAway(bucket string, objects int) {
	m.t.Helper()
	for n := range objects {
		key, want := fmt.Sprint("a", n), awayContent(n)
		if answer, _ := m.download(bucket, key, "HEAD", ""); answer.StatusCode != http.StatusOK || answer.ContentLength != int64(len(want)) {
			m.t.Errorf("HEAD of %s: %s, %d bytes", key, answer.Status, answer.ContentLength)
		}
		if answer, got := m.download(bucket, key, "GET", "300000-300099"); answer.StatusCode != http.StatusPartialContent || got != want[300_000:300_100] {
			m.t.Errorf("a range of %s: %s, %d bytes", key, answer.Status, len(got))
		}
		if answer, got := m.download(bucket, key, "GET", ""); answer.StatusCode != http.StatusOK || got != want {
			m.t.Errorf("%s: %s, %d bytes", key, answer.Status, len(got))
		}
	}
}

// TestObjectsAwayWithoutStore: while the store cannot be read, an object that is away is an answer 503, and nothing else is.
func TestObjectsAwayWithoutStore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := m.prepareCopy(t)
	m.start(append(c.serveFlags(), "--objects-local-size", "1", "--objects-offsite-above", "100000")...)
	bucket := m.createBucket("files")
	m.putAway(bucket, 1)
	testenv.Within(t, 2*time.Minute, "the object to leave", func() bool {
		away, _ := m.awayObjects()
		return away == 1
	})
	m.stop()
	dir := strings.TrimPrefix(c.url, "file://")
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	m.start(append(c.serveFlags(), "--objects-local-size", "1")...)
	answer, text := m.download(bucket, "a1", "GET", "")
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "off-site copy only") {
		t.Errorf("%s, Retry-After %q: %s", answer.Status, answer.Header.Get("Retry-After"), text)
	}
	if answer, _ := m.download(bucket, "a1", "HEAD", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %s", answer.Status)
	}
	if err := os.Rename(dir+".gone", dir); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the object to be read", func() bool {
		answer, text := m.download(bucket, "a1", "GET", "")
		return answer.StatusCode == http.StatusOK && text == awayContent(1)
	})
}

// TestObjectsAwayInAnotherCopy: an object whose bytes are in a copy that is not the configured one says so to every client, and which
// copy it is; that copy's store brings it back.
func TestObjectsAwayInAnotherCopy(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	c, host := m.prepareCopy(t), freeAddress(t)
	flags := append(c.serveFlags(), "--objects-local-size", "1", "--objects-offsite-above", "100000", "--s3-listen", host)
	m.start(flags...)
	m.key = createKey(t, m, "--preset", "full_access")
	bucket := m.createBucket("files")
	m.putAway(bucket, 1)
	var access wire.StorageCredentials
	m.must("GET", "/account/storage-credentials", nil, &access)
	testenv.Within(t, 2*time.Minute, "the object to leave", func() bool {
		away, _ := m.awayObjects()
		return away == 1
	})
	m.stop()
	other := filepath.Join(filepath.Dir(m.dataDir), "other")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(other, 0o777); err != nil { // for the user as whom it runs
		t.Fatal(err)
	}
	second := c
	second.url = "file://" + other
	m.start(append(m.prepare(second).serveFlags(), "--s3-listen", host)...)
	says := func(client string, status int, text string) {
		t.Helper()
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "only in the off-site copy ") || !strings.Contains(text, "as --offsite") {
			t.Errorf("%s: %d, %s", client, status, text)
		}
	}
	answer, text := m.download(bucket, "a1", "GET", "")
	says("a download", answer.StatusCode, text)
	status, refused := m.do("POST", "/buckets/"+bucket+"/copy-object", map[string]any{"key": "b1", "source_key": "a1"})
	says("a copy", status, refused.Error.Message)
	s3, err := minio.NewCore(host, &minio.Options{
		Creds: credentials.NewStaticV4(access.AccessKeyID, access.SecretAccessKey, ""), Region: access.Region, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s3.PresignedGetObject(t.Context(), "files", "a1", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err = http.Get(signed.String())
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	says("S3", answer.StatusCode, string(body))
	cmd := exec.Command(program, "object", "get", "files/a1", "-")
	cmd.Env = []string{"HOME=" + t.TempDir(), "HOLDFAST_URL=" + m.api, "HOLDFAST_API_KEY=" + m.key}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the command succeeds")
	}
	says("the command line", http.StatusServiceUnavailable, string(out))
	m.stop()
	m.start(flags...)
	if _, text := m.download(bucket, "a1", "GET", ""); text != awayContent(1) {
		t.Error("its own copy does not bring the object back")
	}
}
