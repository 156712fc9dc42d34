package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/signer"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// ask sends a request that is signed with c, after change has changed it, and returns its status, the code of its
// error, and its body.
func (w *world) ask(t testing.TB, c credentials, method, path, body string, change func(*http.Request), header ...string) (status int, code, text string) {
	t.Helper()
	r, err := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r = signer.SignV4(*r, c.id, c.secret, "", "us-east-1")
	if change != nil {
		change(r)
	}
	res, code, text := send(t, r)
	return res.StatusCode, code, text
}

// send sends a request, and returns the answer, whose body is read, with the code of its error and its body.
func send(t testing.TB, r *http.Request) (res *http.Response, code, text string) {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var failed errorBody
	if res.StatusCode >= 400 && len(raw) > 0 {
		if err := xml.Unmarshal(raw, &failed); err != nil || failed.RequestID == "" {
			t.Errorf("%s %s: the body of %s is %q: %v", r.Method, r.URL.RequestURI(), res.Status, raw, err)
		}
	}
	return res, failed.Code, string(raw)
}

// TestAttacks sends requests that were changed on their way, or that their key may not make. None of them has an effect.
func TestAttacks(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, org := range []tenant{w.org, w.other} {
		if status, code, _ := w.ask(t, org.full, "PUT", "/vault", "", nil); status != 200 {
			t.Fatal(status, code)
		}
		if status, code, _ := w.ask(t, org.full, "PUT", "/vault/secret", org.id, nil); status != 200 {
			t.Fatal(status, code)
		}
	}
	revoked := w.key(t, w.org.id, access.NewKey{Name: "revoked", Preset: model.PresetFullAccess})
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.id, Operation: model.OperationFor(model.ActionKeyRevoke)}
	if _, err := w.engine.Access.KeyRevoke(call, revoked.id); err != nil {
		t.Fatal(err)
	}
	full := w.org.full
	for name, a := range map[string]struct {
		as           credentials
		method, path string
		body         string
		change       func(*http.Request)
		header       []string
		status       int
		code         string
	}{
		"a wrong secret":            {credentials{full.id, w.other.full.secret}, "GET", "/vault/secret", "", nil, nil, 403, "SignatureDoesNotMatch"},
		"an unknown key":            {credentials{"key_00000000000000000000000000", full.secret}, "GET", "/vault/secret", "", nil, nil, 403, "InvalidAccessKeyId"},
		"an id that is no key's":    {credentials{"AKIAIOSFODNN7EXAMPLE", full.secret}, "GET", "/vault/secret", "", nil, nil, 403, "InvalidAccessKeyId"},
		"a revoked key":             {revoked, "GET", "/vault/secret", "", nil, nil, 403, "InvalidAccessKeyId"},
		"no signature":              {full, "GET", "/vault/secret", "", func(r *http.Request) { r.Header.Del("Authorization") }, nil, 403, "AccessDenied"},
		"a bearer key":              {full, "GET", "/vault/secret", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, nil, 400, "InvalidArgument"},
		"another key's path":        {full, "GET", "/vault/other", "", func(r *http.Request) { r.URL.Path = "/vault/secret" }, nil, 403, "SignatureDoesNotMatch"},
		"another body":              {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Content-Sha256", strings.Repeat("0", 64)}, 400, "XAmzContentSHA256Mismatch"},
		"another checksum":          {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Checksum-Crc32c", "AAAAAA=="}, 400, "BadDigest"},
		"an unknown checksum":       {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Checksum-Md6", "AAAAAA=="}, 400, "InvalidRequest"},
		"an added header":           {full, "PUT", "/vault/secret", "forged", func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/vault/secret") }, nil, 403, "AccessDenied"},
		"a public ACL":              {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Acl", "public-read"}, 501, "NotImplemented"},
		"a customer's key":          {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256"}, 501, "NotImplemented"},
		"a version":                 {full, "GET", "/vault/secret?versionId=x", "", nil, nil, 400, "InvalidArgument"},
		"a read-only key that puts": {w.org.read, "PUT", "/vault/secret", "forged", nil, nil, 403, "AccessDenied"},
		"a key without the scope":   {w.org.none, "GET", "/vault/secret", "", nil, nil, 403, "AccessDenied"},
		"a key without the toggle":  {w.org.developer, "DELETE", "/vault/secret", "", nil, nil, 403, "AccessDenied"},
		"a batch without the scope": {w.org.read, "POST", "/vault?delete", "<Delete><Object><Key>secret</Key></Object></Delete>", nil, nil, 403, "AccessDenied"},
		"a bucket of others":        {full, "GET", "/theirs/secret", "", nil, nil, 404, "NoSuchBucket"},
		"dots":                      {full, "PUT", "/vault/a/../secret", "forged", nil, nil, 400, "InvalidArgument"},
		"encoded dots":              {full, "PUT", "/vault/%2e%2e/vault/secret", "forged", nil, nil, 400, "InvalidArgument"},
		"a control character":       {full, "PUT", "/vault/a%00b", "forged", nil, nil, 400, "InvalidArgument"},
		"a long key":                {full, "PUT", "/vault/" + strings.Repeat("k", 1025), "forged", nil, nil, 400, "KeyTooLongError"},
		"a key that never was":      {full, "GET", "/vault/nothing", "", nil, nil, 404, "NoSuchKey"},
		"an upload that never was":  {full, "PUT", "/vault/secret?uploadId=upl_x&partNumber=1", "forged", nil, nil, 404, "NoSuchUpload"},
		"If-None-Match":             {full, "PUT", "/vault/secret", "forged", nil, []string{"If-None-Match", "*"}, 412, "PreconditionFailed"},
		"If-Match":                  {full, "PUT", "/vault/secret", "forged", nil, []string{"If-Match", `"x"`}, 412, "PreconditionFailed"},
		"If-Match of nothing":       {full, "PUT", "/vault/nothing", "forged", nil, []string{"If-Match", `"x"`}, 404, "NoSuchKey"},
		"a deletion with If-Match":  {full, "DELETE", "/vault/secret", "", nil, []string{"If-Match", `"x"`}, 412, "PreconditionFailed"},
		"If-Match of no tag":        {full, "PUT", "/vault/secret", "forged", nil, []string{"If-Match", `""`}, 412, "PreconditionFailed"},
		"a deletion of no tag":      {full, "DELETE", "/vault/secret", "", nil, []string{"If-Match", `""`}, 412, "PreconditionFailed"},
		"a header signed twice": {full, "GET", "/vault/secret", "", func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "SignedHeaders=host;", "SignedHeaders=host;host;", 1))
		}, nil, 400, "AuthorizationHeaderMalformed"},
		"a part of unknown length": {
			full, "PUT", "/vault/secret?partNumber=1&uploadId=upl_x", "forged", func(r *http.Request) { r.ContentLength = -1 },
			[]string{"X-Amz-Decoded-Content-Length", "1"},
			411, "MissingContentLength",
		},
		"a semicolon in the query":   {full, "DELETE", "/vault/secret?versionId=x%3By", "", func(r *http.Request) { r.URL.RawQuery = "versionId=x;y" }, nil, 400, "InvalidArgument"},
		"more elements than parts":   {full, "POST", "/vault?delete", "<Delete>" + strings.Repeat("<Object/>", 200_000) + "</Delete>", nil, nil, 400, "MalformedXML"},
		"an upload without an id":    {full, "POST", "/vault/secret?uploadId=", "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>", nil, nil, 404, "NoSuchUpload"},
		"a range beyond the end":     {full, "GET", "/vault/secret", "", nil, []string{"Range", "bytes=1000-"}, 416, "InvalidRange"},
		"a bucket that is not empty": {full, "DELETE", "/vault", "", nil, nil, 409, "BucketNotEmpty"},
		"a bucket's bad name":        {full, "PUT", "/Vault", "", nil, nil, 400, "InvalidBucketName"},
		"malformed XML":              {full, "POST", "/vault?delete", "<Delete><Object>", nil, nil, 400, "MalformedXML"},
		"notifications":              {full, "PUT", "/vault?notification", "{}", nil, nil, 501, "NotImplemented"},
		"MinIO's events":             {full, "GET", "/vault?events=s3:ObjectCreated:*&prefix=&suffix=", "", nil, nil, 501, "NotImplemented"},
		"MinIO's events of all":      {full, "GET", "/?events=s3:ObjectCreated:*&ping=10", "", nil, nil, 501, "NotImplemented"},
		"MinIO's object lambda":      {full, "GET", "/vault/secret?lambdaArn=arn:minio:s3-object-lambda::f:webhook", "", nil, nil, 501, "NotImplemented"},
		"MinIO's replication":        {full, "GET", "/vault?replication-metrics=2", "", nil, nil, 501, "NotImplemented"},
		"a replication's reset":      {full, "PUT", "/vault?replication-reset=&arn=x", "", nil, nil, 501, "NotImplemented"},
		"metadata tables":            {full, "PUT", "/vault?metadataInventoryTable", "", nil, nil, 501, "NotImplemented"},
		"MinIO's snowball":           {full, "PUT", "/vault/secret", "a tar", nil, []string{"X-Amz-Meta-Snowball-Auto-Extract", "true"}, 501, "NotImplemented"},
		"MinIO's extraction":         {full, "GET", "/vault/secret", "", nil, []string{"X-Minio-Extract", "true"}, 501, "NotImplemented"},
		"MinIO's forced deletion":    {full, "DELETE", "/vault/sec", "", nil, []string{"X-Minio-Force-Delete", "true"}, 501, "NotImplemented"},
		"prefixes without versions":  {full, "PUT", "/vault?versioning", "<VersioningConfiguration><Status>Enabled</Status><ExcludedPrefixes><Prefix>tmp/</Prefix></ExcludedPrefixes></VersioningConfiguration>", nil, nil, 501, "NotImplemented"},
		"folders without versions":   {full, "PUT", "/vault?versioning", "<VersioningConfiguration><Status>Enabled</Status><ExcludeFolders>true</ExcludeFolders></VersioningConfiguration>", nil, nil, 501, "NotImplemented"},
		"a large value of metadata":  {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Meta-A", strings.Repeat("x", 2049)}, 400, "MetadataTooLarge"},
		"much metadata":              {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Meta-A", strings.Repeat("x", 1024), "X-Amz-Meta-B", strings.Repeat("x", 1024)}, 400, "MetadataTooLarge"},
		"metadata that is no text":   {full, "PUT", "/vault/secret", "forged", nil, []string{"X-Amz-Meta-A", "\xff"}, 400, "InvalidArgument"},
		"another method":             {full, "PATCH", "/vault/secret", "", nil, nil, 405, "MethodNotAllowed"},
	} {
		status, code, _ := w.ask(t, a.as, a.method, a.path, a.body, a.change, a.header...)
		if status != a.status || code != a.code {
			t.Errorf("%s: %d %s, want %d %s", name, status, code, a.status, a.code)
		}
	}
	for _, ignored := range []string{"/?x-id=ListBuckets", "/vault?x-id=ListObjects&colour=blue", "/vault?list-type=2&metadata=true", "/vault/secret?x-id=GetObject"} {
		if status, code, _ := w.ask(t, full, "GET", ignored, "", nil); status != 200 {
			t.Errorf("%s: %d %s", ignored, status, code)
		}
	}
	for _, org := range []tenant{w.org, w.other} {
		if _, _, text := w.ask(t, org.full, "GET", "/vault/secret", "", nil); text != org.id {
			t.Errorf("the object is %q now", text)
		}
		if _, _, text := w.ask(t, org.full, "GET", "/vault", "", nil); strings.Count(text, "<Contents>") != 1 {
			t.Errorf("the bucket holds: %s", text)
		}
	}
}

// TestPresignedExpires uses a presigned URL beyond its time, and for what it was not made.
func TestPresignedExpires(t *testing.T) {
	t.Parallel()
	w := open(t)
	c, ctx := w.minio(t, w.org.full), context.Background()
	if err := c.MakeBucket(ctx, "photos", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	put, err := c.PresignedPutObject(ctx, "photos", "k", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, target, body string) int {
		r, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := send("PUT", put.String(), "x"); got != 200 {
		t.Errorf("presigned PUT: %d", got)
	}
	for name, got := range map[string]int{
		"another method": send("GET", put.String(), ""),
		"another key":    send("PUT", strings.Replace(put.String(), "/photos/k", "/photos/l", 1), "x"),
		"a longer life":  send("PUT", strings.Replace(put.String(), "Expires=3600", "Expires=7200", 1), "x"),
		"an earlier one": send("PUT", backdated(t, put, 2*time.Hour), "x"),
	} {
		if got != 403 {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// backdated returns a URL with an earlier date.
func backdated(t testing.TB, u *url.URL, by time.Duration) string {
	t.Helper()
	query := u.Query()
	at, err := time.Parse("20060102T150405Z", query.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	date, earlier := at.Format("20060102"), at.Add(-by)
	query.Set("X-Amz-Date", earlier.Format("20060102T150405Z"))
	query.Set("X-Amz-Credential", strings.Replace(query.Get("X-Amz-Credential"), date, earlier.Format("20060102"), 1)) // it may be past midnight
	changed := *u
	changed.RawQuery = query.Encode()
	return changed.String()
}

// TestChangedChunk changes one byte of a body in signed chunks: the object stays as it was.
func TestChangedChunk(t *testing.T) {
	t.Parallel()
	w := open(t)
	if status, code, _ := w.ask(t, w.org.full, "PUT", "/vault", "", nil); status != 200 {
		t.Fatal(status, code)
	}
	data := random(1, 200_000)
	for name, change := range map[string]func([]byte) []byte{
		"as sent":   func(b []byte) []byte { return b },
		"changed":   func(b []byte) []byte { b[100_000] ^= 1; return b },
		"shortened": func(b []byte) []byte { return append(b[:len(b)-100], make([]byte, 100)...) },
	} {
		r, err := http.NewRequest("PUT", w.server.URL+"/vault/"+url.PathEscape(name), bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(data))
		r = signer.StreamingSignV4(r, w.org.full.id, w.org.full.secret, "", "us-east-1", int64(len(data)), time.Now().UTC(), newSHA256())
		encoded, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(change(encoded)))
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		status, _, _ := w.ask(t, w.org.full, "HEAD", "/vault/"+url.PathEscape(name), "", nil)
		if stored := name == "as sent"; (res.StatusCode == 200) != stored || (status == 200) != stored {
			t.Errorf("%s: %s, and then %d", name, res.Status, status)
		}
	}
}
