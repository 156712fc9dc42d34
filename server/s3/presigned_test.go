package s3

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// askPresigned is ask for a request that is signed in its query, with its headers.
func (w *world) askPresigned(t testing.TB, c credentials, method, path, body string, header ...string) (status int, code string, res *http.Response) {
	t.Helper()
	r, err := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, code, _ = send(t, signer.PreSignV4(*r, c.id, c.secret, "", "us-east-1", 60))
	return res.StatusCode, code, res
}

// TestPresignedHeaders presigns requests with headers in the query, as the SDK for JavaScript does.
func TestPresignedHeaders(t *testing.T) {
	t.Parallel()
	w := open(t)
	full := w.org.full
	if status, code, _ := w.ask(t, full, "PUT", "/locked", "", nil, "X-Amz-Bucket-Object-Lock-Enabled", "true"); status != 200 {
		t.Fatal(status, code)
	}
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	query := url.Values{
		"x-amz-meta-owner": {" Ann Ö "}, "X-Amz-Meta-Team": {"blue"}, "x-amz-tagging": {"a=1&b=2"}, "x-amz-acl": {"private"}, "x-amz-storage-class": {"STANDARD"},
		"x-amz-object-lock-mode": {"GOVERNANCE"}, "x-amz-object-lock-retain-until-date": {until}, "x-amz-object-lock-legal-hold": {"ON"},
		"x-amz-website-redirect-location": {"/there"}, "x-id": {"PutObject"},
		"x-amz-checksum-crc32": {"AAAAAA=="}, "x-amz-sdk-checksum-algorithm": {"CRC32"}, // of no body, by default
	}
	if status, code, _ := w.askPresigned(t, full, "PUT", "/locked/a?"+query.Encode(), "the body", "X-Amz-Meta-Team", "blue"); status != 200 {
		t.Fatal(status, code)
	}
	_, _, res := w.askPresigned(t, full, "HEAD", "/locked/a?x-amz-checksum-mode=ENABLED", "")
	for name, want := range map[string]string{
		"X-Amz-Meta-Owner": "Ann Ö", "X-Amz-Meta-Team": "blue", "X-Amz-Tagging-Count": "2", "X-Amz-Website-Redirect-Location": "/there",
		"X-Amz-Object-Lock-Mode": "GOVERNANCE", "X-Amz-Object-Lock-Retain-Until-Date": strings.Replace(until, "Z", ".000Z", 1), "X-Amz-Object-Lock-Legal-Hold": "ON",
		"X-Amz-Checksum-Type": "FULL_OBJECT",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
	if status, code, _ := w.askPresigned(t, full, "PUT", "/locked/copy?x-amz-copy-source=locked%2Fa", ""); status != 200 {
		t.Errorf("a copy: %d %s", status, code)
	}
	if _, _, text := w.ask(t, full, "GET", "/locked/copy", "", nil); text != "the body" {
		t.Errorf("the copy is %q", text)
	}
	if status, code, _ := w.ask(t, full, "PUT", "/locked/plain?x-amz-acl=public-read&x-amz-meta-a=b", "x", nil); status != 200 {
		t.Errorf("a request that is signed in its headers: %d %s", status, code)
	}
	if _, _, res := w.askPresigned(t, full, "HEAD", "/locked/plain", ""); res.Header.Get("X-Amz-Meta-A") != "" {
		t.Error("a parameter of a request that is signed in its headers is stored")
	}
}

// TestPresignedRefused presigns requests with parameters that are refused as headers, too. Nothing is stored.
func TestPresignedRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ask(t, w.org.full, "PUT", "/vault", "", nil)
	uploads := w.key(t, w.org.id, access.NewKey{Name: "uploads", Scopes: []model.Scope{model.ScopeStorageCreate}, Source: model.KeySourceOperator})
	for name, a := range map[string]struct {
		as     credentials
		query  string
		header []string
		status int
		code   string
	}{
		"a public ACL":                {query: "x-amz-acl=public-read", status: 501, code: "NotImplemented"},
		"a public ACL in capitals":    {query: "X-Amz-ACL=public-read", status: 501, code: "NotImplemented"},
		"a storage class":             {query: "x-amz-storage-class=GLACIER", status: 400, code: "InvalidStorageClass"},
		"encryption":                  {query: "x-amz-server-side-encryption=AES256", status: 501, code: "NotImplemented"},
		"a lock without Object Lock":  {query: "x-amz-object-lock-legal-hold=ON", status: 400, code: "InvalidRequest"},
		"another checksum":            {query: "x-amz-checksum-crc32c=yZRlqg%3D%3D", status: 400, code: "BadDigest"},
		"an unknown checksum":         {query: "x-amz-checksum-md6=AAAAAA%3D%3D", status: 400, code: "InvalidRequest"},
		"another bucket owner":        {query: "x-amz-expected-bucket-owner=123456789012", status: 403, code: "AccessDenied"},
		"a header that contradicts":   {query: "x-amz-meta-a=b", header: []string{"X-Amz-Meta-A", "c"}, status: 400, code: "InvalidArgument"},
		"parameters that contradict":  {query: "x-amz-meta-a=b&X-Amz-Meta-A=c", status: 400, code: "InvalidArgument"},
		"a line feed":                 {query: "x-amz-meta-a=b%0Ac", status: 400, code: "InvalidArgument"},
		"a line feed in a name":       {query: "x-amz-meta-a%0A=b", status: 400, code: "InvalidArgument"},
		"no ASCII in a name":          {query: "x-amz-meta-%C3%B6=b", status: 400, code: "InvalidArgument"},
		"a Kelvin sign in a name":     {query: "x-amz-meta-%E2%84%AA=b", status: 400, code: "InvalidArgument"},
		"a session token":             {query: "X-Amz-Security-Token=x", status: 400, code: "InvalidToken"},
		"more than the headers' size": {query: "x-amz-meta-a=" + strings.Repeat("x", maxHeaders), status: 400, code: "RequestHeaderSectionTooLarge"},
		"a copy of what it may not read": {
			as: uploads, query: "x-amz-copy-source=vault%2Fa", status: 403, code: "AccessDenied",
		},
	} {
		as := a.as
		if as.id == "" {
			as = w.org.full
		}
		if status, code, _ := w.askPresigned(t, as, "PUT", "/vault/secret?"+a.query, "the body", a.header...); status != a.status || code != a.code {
			t.Errorf("%s: %d %s, want %d %s", name, status, code, a.status, a.code)
		}
	}
	if status, code, _ := w.askPresigned(t, w.org.full, "GET", "/vault/secret?x-amz-copy-source=vault%2Fa", ""); status != 400 || code != "InvalidArgument" {
		t.Errorf("a download with a source: %d %s", status, code)
	}
	if _, _, text := w.ask(t, w.org.full, "GET", "/vault", "", nil); strings.Contains(text, "<Contents>") {
		t.Errorf("the bucket holds: %s", text)
	}
}
