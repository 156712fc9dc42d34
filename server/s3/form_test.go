package s3

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"holdfast/engine/model"
	"holdfast/server/content"
)

// signedForm makes the fields of a form for the bucket vault, with a client for MinIO.
func (w *world) signedForm(t *testing.T, c credentials, change func(*minio.PostPolicy)) (to *url.URL, fields map[string]string) {
	t.Helper()
	p := minio.NewPostPolicy()
	for _, err := range []error{p.SetBucket("vault"), p.SetKeyStartsWith("in/"), p.SetExpires(time.Now().Add(time.Hour))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(p)
	}
	to, fields, err := w.minio(t, c).PresignedPostPolicy(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return to, fields
}

// resign adds fields to a form and to its policy, which the client for MinIO cannot.
func resign(c credentials, added map[string]string) func(map[string]string) {
	return func(fields map[string]string) {
		maps.Copy(fields, added)
		conditions := []map[string]string{{"bucket": "vault"}}
		for name, value := range fields {
			if name != "policy" && name != "x-amz-signature" && name != "bucket" {
				conditions = append(conditions, map[string]string{name: value})
			}
		}
		policy, _ := json.Marshal(map[string]any{"expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "conditions": conditions})
		fields["policy"] = base64.StdEncoding.EncodeToString(policy)
		key := []byte("AWS4" + c.secret)
		for _, text := range []string{fields["x-amz-date"][:8], model.S3Region, "s3", "aws4_request", fields["policy"]} {
			h := hmac.New(sha256.New, key)
			h.Write([]byte(text))
			key = h.Sum(nil)
		}
		fields["x-amz-signature"] = hex.EncodeToString(key)
	}
}

// formOf encodes a form whose file is the last field but those after it.
func formOf(t *testing.T, fields map[string]string, name, file string, after ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for name, value := range fields {
		if err := m.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	part, err := m.CreateFormFile("file", name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, file)
	for _, value := range after {
		if err := m.WriteField("after", value); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), m.FormDataContentType()
}

// post sends a form as a browser does, and returns the response and the code of its error.
func post(t *testing.T, to *url.URL, body, contentType string) (*http.Response, string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Post(to.String(), contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var failed errorBody
	if res.StatusCode >= 400 {
		if err := xml.Unmarshal(text, &failed); err != nil {
			t.Errorf("%s: %q", res.Status, text)
		}
	}
	return res, failed.Code
}

func (w *world) vault(t *testing.T) *minio.Client {
	t.Helper()
	c := w.minio(t, w.org.full)
	if err := c.MakeBucket(t.Context(), "vault", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestForm uploads files by HTML forms, for which a client for MinIO signs policies.
func TestForm(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.vault(t)
	large := string(random(1, 3<<20))
	sum := minio.ChecksumCRC32C.ChecksumBytes([]byte(large))
	to, fields := w.signedForm(t, w.org.full, func(p *minio.PostPolicy) {
		for _, err := range []error{
			p.SetContentType("text/plain"), p.SetUserMetadata("origin", "browser"), p.SetContentLengthRange(1, int64(len(large))),
			p.SetSuccessActionRedirect("https://example.com/done?a=b"), p.SetChecksum(sum),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	fields["key"] = "in/${filename}"
	fields["X-Ignore-Submit"] = "Upload"
	body, contentType := formOf(t, fields, `C:\Users\me\photo.txt`, large, "what follows")
	res, code := post(t, to, body, contentType)
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s %s", res.Status, code)
	}
	if got, want := res.Header.Get("X-Amz-Checksum-Crc32c"), sum.Encoded(); got != want {
		t.Errorf("the checksum %q, want %q", got, want)
	}
	if at := res.Header.Get("Location"); !strings.HasPrefix(at, "https://example.com/done?a=b&bucket=vault&etag=%22") || !strings.HasSuffix(at, "%22&key=in%2Fphoto.txt") {
		t.Errorf("Location: %s", at)
	}
	o, err := c.GetObject(t.Context(), "vault", "in/photo.txt", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(o)
	if err != nil || string(got) != large {
		t.Errorf("%d bytes are there, of %d: %v", len(got), len(large), err)
	}
	info, err := o.Stat()
	if err != nil || info.ContentType != "text/plain" || info.UserMetadata["Origin"] != "browser" {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestFormRefused sends forms that their policies do not allow, or that are damaged. None stores anything.
func TestFormRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.vault(t)
	if status, code, _ := w.ask(t, w.other.full, "PUT", "/vault", "", nil); status != 200 {
		t.Fatal(status, code)
	}
	set := func(name, value string) func(map[string]string) {
		return func(fields map[string]string) { fields[name] = value }
	}
	for name, a := range map[string]struct {
		as     credentials
		policy func(*minio.PostPolicy)
		change func(map[string]string)
		file   string
		status int
		code   string
	}{
		"another key":           {change: set("key", "out/x"), status: 403, code: "AccessDenied"},
		"an added field":        {change: set("content-type", "text/html"), status: 403, code: "AccessDenied"},
		"another signature":     {change: set("x-amz-signature", strings.Repeat("0", 64)), status: 403, code: "SignatureDoesNotMatch"},
		"another policy":        {change: set("policy", "e30="), status: 403, code: "SignatureDoesNotMatch"},
		"another credential":    {change: set("x-amz-credential", "no slashes"), status: 400, code: "InvalidArgument"},
		"no policy":             {change: func(f map[string]string) { delete(f, "policy") }, status: 400, code: "InvalidArgument"},
		"no key":                {change: func(f map[string]string) { delete(f, "key") }, status: 400, code: "InvalidArgument"},
		"no signature at all":   {change: func(f map[string]string) { clear(f); f["key"] = "in/x" }, status: 403, code: "AccessDenied"},
		"many fields":           {change: set("x-ignore-fill", strings.Repeat("x", content.MaxFormFields)), status: 400, code: "MaxPostPreDataLengthExceededError"},
		"dots":                  {change: set("key", "in/../x"), status: 400, code: "InvalidArgument"},
		"an old date":           {change: set("x-amz-date", "20260101T000000Z"), status: 400, code: "InvalidArgument"},
		"a key that may read":   {as: w.org.read, status: 403, code: "AccessDenied"},
		"an unknown access key": {change: set("x-amz-credential", "x/20260101/us-east-1/s3/aws4_request"), status: 403, code: "InvalidAccessKeyId"},
		"too large": {
			policy: func(p *minio.PostPolicy) { _ = p.SetContentLengthRange(1, 3) }, file: "four", status: 400, code: "EntityTooLarge",
		},
		"far too large": {
			policy: func(p *minio.PostPolicy) { _ = p.SetContentLengthRange(1, 3) }, file: strings.Repeat("x", 1<<20), status: 400, code: "EntityTooLarge",
		},
		"too small": {
			policy: func(p *minio.PostPolicy) { _ = p.SetContentLengthRange(10, 20) }, file: "four", status: 400, code: "EntityTooSmall",
		},
		"a public ACL": {change: resign(w.org.full, map[string]string{"acl": "public-read"}), status: 501, code: "NotImplemented"},
		"a wrong checksum": {
			change: resign(w.org.full, map[string]string{"x-amz-checksum-crc32c": "AAAAAA=="}), file: "four", status: 400, code: "BadDigest",
		},
		"large metadata": {
			change: resign(w.org.full, map[string]string{"x-amz-meta-a": strings.Repeat("x", 2049)}), status: 400, code: "MetadataTooLarge",
		},
		"metadata with a strange name": {
			policy: func(p *minio.PostPolicy) { _ = p.SetUserMetadata("a b", "x") }, status: 400, code: "InvalidArgument",
		},
	} {
		t.Run(name, func(t *testing.T) {
			as := a.as
			if as.id == "" {
				as = w.org.full
			}
			to, fields := w.signedForm(t, as, a.policy)
			fields["key"] = "in/x"
			if a.change != nil {
				a.change(fields)
			}
			body, contentType := formOf(t, fields, "x", a.file)
			res, code := post(t, to, body, contentType)
			if res.StatusCode != a.status || code != a.code {
				t.Errorf("%s, and it should be %d %s: %s", res.Status, a.status, a.code, code)
			}
		})
	}
	to, fields := w.signedForm(t, w.org.full, nil)
	fields["key"] = "in/x"
	body, contentType := formOf(t, fields, "x", "the file")
	for name, cut := range map[string]string{
		"ends in the file": body[:strings.Index(body, "the file")+3], "ends in a field": body[:20],
		"twice a field": strings.Replace(body, "\r\nContent-Disposition: form-data; name=\"key\"", "\r\nContent-Disposition: form-data; name=\"policy\"", 1),
	} {
		if res, code := post(t, to, cut, contentType); res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("a form that %s: %s %s", name, res.Status, code)
		}
	}
	if res, code := post(t, to, body, "application/json"); res.StatusCode != http.StatusPreconditionFailed || code != "PreconditionFailed" {
		t.Errorf("a body that is no form: %s %s", res.Status, code)
	}
	for o := range c.ListObjects(t.Context(), "vault", minio.ListObjectsOptions{Recursive: true}) {
		t.Errorf("%s is stored", o.Key)
	}
}

// TestObjectAttributes asks for the attributes of an object that was uploaded in parts.
func TestObjectAttributes(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.vault(t)
	whole := random(2, 12<<20)
	_, err := c.PutObject(t.Context(), "vault", "parts", bytes.NewReader(whole), int64(len(whole)), minio.PutObjectOptions{PartSize: 5 << 20})
	if err != nil {
		t.Fatal(err)
	}
	after := 0
	var sizes []int
	for range 4 {
		got, err := c.GetObjectAttributes(t.Context(), "vault", "parts", minio.ObjectAttributesOptions{MaxParts: 1, PartNumberMarker: after})
		if err != nil {
			t.Fatal(err)
		}
		if got.ObjectSize != len(whole) || got.StorageClass != "STANDARD" || !strings.HasSuffix(got.ETag, "-3") || got.ObjectParts.PartsCount != 3 {
			t.Fatalf("%+v", got)
		}
		for _, p := range got.ObjectParts.Parts {
			sizes = append(sizes, p.Size)
		}
		if after = got.ObjectParts.NextPartNumberMarker; !got.ObjectParts.IsTruncated {
			break
		}
	}
	if got, want := fmt.Sprint(sizes), fmt.Sprint([]int{5 << 20, 5 << 20, 2 << 20}); got != want {
		t.Errorf("the parts have %s bytes, not %s", got, want)
	}
	status, code, _ := w.ask(t, w.org.none, "GET", "/vault/parts?attributes", "", nil, "X-Amz-Object-Attributes", "ETag")
	if status != 403 || code != "AccessDenied" {
		t.Errorf("a key without the scope: %d %s", status, code)
	}
	if status, code, _ := w.ask(t, w.org.full, "GET", "/vault/parts?attributes", "", nil, "X-Amz-Object-Attributes", "Colour"); status != 400 || code != "InvalidArgument" {
		t.Errorf("an unknown attribute: %d %s", status, code)
	}
}
