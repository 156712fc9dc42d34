package api

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/server/api/wire"
)

func sums(body string) (sha, crc string) {
	sum := sha256.Sum256([]byte(body))
	check := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, check))
}

func TestUpload(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "uploads")
	sha, crc := sums("hello")
	for _, test := range []struct {
		name, contentType string
		header            map[string]string
		status            int
		stored            string // content type
	}{
		{"plain", "text/plain", nil, 200, "text/plain"},
		{"parameters", `TEXT/plain; Charset="utf-8"`, nil, 200, "text/plain; charset=utf-8"},
		{"nothing said", "", nil, 200, "application/octet-stream"},
		{"never sniffed", "application/json", nil, 200, "application/json"},
		{"malformed type", "nonsense", nil, 422, ""},
		{"malformed parameter", "text/plain; charset", nil, 422, ""},
		{"long type", "text/" + strings.Repeat("x", 300), nil, 422, ""},
		{"checksums", "", map[string]string{"X-Checksum-SHA256": sha, "X-Checksum-CRC32C": crc}, 200, "application/octet-stream"},
		{"wrong SHA-256", "", map[string]string{"X-Checksum-SHA256": base64.StdEncoding.EncodeToString(make([]byte, 32))}, 422, ""},
		{"wrong CRC", "", map[string]string{"X-Checksum-CRC32C": "AAAAAA=="}, 422, ""},
		{"malformed CRC", "", map[string]string{"X-Checksum-CRC32C": "zz"}, 422, ""},
		{"encoded", "", map[string]string{"Content-Encoding": "gzip"}, 422, ""},
		{"not encoded", "", map[string]string{"Content-Encoding": "identity"}, 200, "application/octet-stream"},
		{"other condition", "", map[string]string{"If-None-Match": `"abc"`}, 422, ""},
		{"condition that is not supported", "", map[string]string{"If-Match": `"abc"`}, 422, ""},
		{"date that is not supported", "", map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, 422, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := w.buckets(t)[0].ObjectCount
			got := w.do(t, request{
				method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=" + strings.ReplaceAll(test.name, " ", "-"), key: w.org.full,
				contentType: test.contentType, header: test.header, body: "hello",
			})
			if got.status != test.status {
				t.Fatalf("%d %s", got.status, got.text)
			}
			after := w.buckets(t)[0].ObjectCount
			if test.status != 200 {
				if after != before {
					t.Error("something was stored")
				}
				return
			}
			o := get[wire.Object](t, got)
			if o.ContentType != test.stored || o.ChecksumCRC32C != crc || o.SizeBytes != 5 {
				t.Errorf("%+v", o)
			}
			if want := test.header["X-Checksum-SHA256"]; want != "" && (o.ChecksumSHA256 == nil || *o.ChecksumSHA256 != want) {
				t.Errorf("checksum_sha256 %v", o.ChecksumSHA256)
			}
			if !strings.HasPrefix(o.ETag, `"`) || !strings.HasSuffix(o.ETag, `"`) {
				t.Errorf("etag %s", o.ETag)
			}
		})
	}
}

func TestUploadIfNoneMatch(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "once")
	in := request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, body: "x", header: map[string]string{"If-None-Match": "*"}}
	if got := w.do(t, in); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.text)
	}
	if got := w.do(t, in); got.status != 409 {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// multipartBody writes a multipart body.
func multipartBody(parts ...[3]string) (contentType string, body *bytes.Buffer) {
	body = &bytes.Buffer{}
	m := multipart.NewWriter(body)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {p[0]}}
		if p[1] != "" {
			h.Set("Content-Type", p[1])
		}
		part, _ := m.CreatePart(h)
		_, _ = io.WriteString(part, p[2])
	}
	_ = m.Close()
	return m.FormDataContentType(), body
}

func TestUploadMultipart(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "forms")
	file := `form-data; name="file"; filename="a.png"`
	big := strings.Repeat("0123456789abcdef", 1<<16)
	for _, test := range []struct {
		name   string
		parts  [][3]string
		cut    int
		status int
	}{
		{"one file", [][3]string{{file, "image/png", "hello"}}, 0, 200},
		{"a large file", [][3]string{{file, "image/png", big}}, 0, 200},
		{"an empty file", [][3]string{{file, "image/png", ""}}, 0, 200},
		{"no type", [][3]string{{file, "", "hello"}}, 0, 200},
		{"bytes that look encoded", [][3]string{{file + "\r\nContent-Transfer-Encoding: quoted-printable", "image/png", "a=3Db=\r\n"}}, 0, 200},
		{"bad type", [][3]string{{file, "bad", "hello"}}, 0, 422},
		{"none", nil, 0, 422},
		{"two files", [][3]string{{file, "", "a"}, {file, "", "b"}}, 0, 422},
		{"a file and a field", [][3]string{{file, "", "a"}, {`form-data; name="x"`, "", "b"}}, 0, 422},
		{"a field only", [][3]string{{`form-data; name="x"`, "", "b"}}, 0, 422},
		{"cut in the file", [][3]string{{file, "", big}}, 1 << 19, 422},
		{"a long header", [][3]string{{file + "\r\nX-Fill: " + big[:40<<10], "image/png", "hello"}}, 0, 422},
		{"a long header after the file", [][3]string{{file, "", "hello"}, {`form-data; name="` + big[:40<<10] + `"`, "", "b"}}, 0, 422},
		{"cut in the end", [][3]string{{file, "", "hello"}}, 4, 422},
	} {
		t.Run(test.name, func(t *testing.T) {
			contentType, body := multipartBody(test.parts...)
			body.Truncate(body.Len() - test.cut)
			before := w.buckets(t)[0].SizeBytes
			got := w.do(t, request{
				method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k" + strings.ReplaceAll(test.name, " ", ""), key: w.org.full,
				contentType: contentType, stream: body,
			})
			if got.status != test.status {
				t.Fatalf("%d %s", got.status, got.text)
			}
			if after := w.buckets(t)[0].SizeBytes; test.status != 200 && after != before {
				t.Error("something was stored")
			}
			if test.status != 200 {
				return
			}
			want := test.parts[0][1]
			if want == "" {
				want = "application/octet-stream"
			}
			if o := get[wire.Object](t, got); o.SizeBytes != int64(len(test.parts[0][2])) || o.ContentType != want {
				t.Errorf("%+v", o)
			}
		})
	}
	got := w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, contentType: "multipart/form-data", body: "x"})
	if got.status != 422 || !strings.Contains(got.msg, "boundary") {
		t.Errorf("without boundary: %d %s", got.status, got.text)
	}
}

// TestUploadIsStreamed sends an object much larger than the allocation limit, with and without a length.
func TestUploadIsStreamed(t *testing.T) {
	w := open(t, func(c *core.Config) { c.MaxObjectBytes = 1 << 30 })
	bucket := w.bucket(t, "streams")
	const size = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := w.do(t, request{
		method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, stream: io.LimitReader(rand.Reader, size),
	})
	runtime.ReadMemStats(&after)
	if o := get[wire.Object](t, got); o.SizeBytes != size {
		t.Errorf("%d bytes", o.SizeBytes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("an upload of %d bytes allocated %d", size, grown)
	}
}

func TestUploadTooLarge(t *testing.T) {
	w := open(t, func(c *core.Config) { c.MaxObjectBytes = 1000 })
	bucket := w.bucket(t, "small")
	for _, in := range []request{
		{body: strings.Repeat("x", 1001)},
		{stream: io.LimitReader(rand.Reader, 1001)},
	} {
		in.method, in.path, in.key = "POST", "/buckets/"+bucket.ID+"/objects?key=k", w.org.full
		if got := w.do(t, in); got.status != 413 || got.code != "validation_error" {
			t.Errorf("%d %s", got.status, got.text)
		}
	}
	if got := w.do(t, request{method: "POST", path: "/buckets/" + bucket.ID + "/objects?key=k", key: w.org.full, body: strings.Repeat("x", 1000)}); got.status != 200 {
		t.Errorf("as large as may be: %d %s", got.status, got.text)
	}
}

// raw sends bytes unchanged and returns the response, or nil.
func (w *world) raw(tb testing.TB, head, body string, hangUp bool) *http.Response {
	tb.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "%s\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n%s", head, w.org.full, body)
	if hangUp {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	method, _, _ := strings.Cut(head, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		tb.Logf("no answer: %v", err)
		return nil
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res
}

func TestUploadThatEndsEarly(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "early")
	target := "POST /v1/buckets/" + bucket.ID + "/objects?key=k HTTP/1.1\r\n"
	for _, test := range []struct{ name, head, body string }{
		{"shorter than announced", target + "Content-Length: 100", "only this"},
		{"no last chunk", target + "Transfer-Encoding: chunked", "5\r\nhello\r\n"},
		{"bad chunk", target + "Transfer-Encoding: chunked", "5\r\nhello\r\nzz\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if res := w.raw(t, test.head, test.body, true); res != nil && res.StatusCode != 422 {
				t.Errorf("status %d", res.StatusCode)
			}
			if n := w.buckets(t)[0].ObjectCount; n != 0 {
				t.Error("something was stored")
			}
		})
	}
}

// TestExpectContinue checks that a client that waits for permission to send is rejected before it sends, and may
// send if the request is valid.
func TestExpectContinue(t *testing.T) {
	w := open(t)
	bucket := w.bucket(t, "expect")
	w.put(t, bucket.ID, "taken", "x")
	objects := "/buckets/" + bucket.ID + "/objects"
	for _, test := range []struct {
		path   string
		length int
		status int
	}{
		{objects + "?key=k", 5, 100},
		{objects + "?key=k", 8 << 20, 100},
		{objects + "?key=k", 9 << 20, 413},
		{objects + "?key=taken", 5, 409},
		{"/buckets/none/objects?key=k", 5, 404},
		{objects + "?key=..", 5, 422},
		{objects, 5, 422},
	} {
		for _, contentType := range []string{"text/plain", "multipart/form-data; boundary=b"} {
			head := fmt.Sprintf("POST /v1%s HTTP/1.1\r\nContent-Length: %d\r\nContent-Type: %s\r\nIf-None-Match: *\r\nExpect: 100-continue",
				test.path, test.length, contentType)
			if res := w.raw(t, head, "", false); res == nil || res.StatusCode != test.status {
				t.Errorf("%s, %s of %d bytes: %v, want %d", test.path, contentType, test.length, res, test.status)
			}
		}
	}
}
