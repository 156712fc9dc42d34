package s3

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// TestUnknownElements: a document with an element that is unknown here, or that occurs twice, is refused. To pass over it would
// do something else than the client means.
func TestUnknownElements(t *testing.T) {
	t.Parallel()
	w := open(t)
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	if err := client.MakeBucket(t.Context(), "vault", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	w.objectIn(t, client, "vault")
	rule := func(filter string) string {
		return "<LifecycleConfiguration><Rule><Status>Enabled</Status>" + filter + "<Expiration><Days>3</Days></Expiration></Rule></LifecycleConfiguration>"
	}
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, test := range []struct{ method, path, document, want string }{
		{"PUT", "/photos?lifecycle", rule("<filter><Prefix>logs/</Prefix></filter>"), "MalformedXML"},
		{"PUT", "/photos?lifecycle", rule("<Filter><prefix>logs/</prefix></Filter>"), "MalformedXML"},
		{"PUT", "/photos?lifecycle", rule("<Filter><Prefixes>logs/</Prefixes></Filter>"), "MalformedXML"},
		{"PUT", "/photos?lifecycle", rule("<Filter><Prefix>logs/</Prefix></Filter><Filter><Prefix/></Filter>"), "MalformedXML"},
		{"PUT", "/photos?lifecycle", rule("<Filter><Prefix>logs/</Prefix></Filter>"), ""},
		{"PUT", "/photos?lifecycle", rule("<Filter><And><Prefix>logs/</Prefix><Tag><Key>a</Key></Tag></And></Filter>"), "NotImplemented"},
		{"PUT", "/photos?lifecycle", rule("<Transition><Days>1</Days></Transition><Transition><Days>2</Days></Transition>"), "NotImplemented"},
		{"PUT", "/photos?lifecycle", rule("<Filter></Filter>"), ""},
		{"PUT", "/vault?object-lock", "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></rule></ObjectLockConfiguration>", "MalformedXML"},
		{"PUT", "/vault/k?retention", "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>" + until + "</RetainUntilDate></Retention>", ""},
		{"PUT", "/vault/k?retention", "<Retention><mode>GOVERNANCE</mode><retainUntilDate>" + until + "</retainUntilDate></Retention>", "MalformedXML"},
		{"PUT", "/photos?publicAccessBlock", "<PublicAccessBlockConfiguration><BlockPublicACLs>true</BlockPublicACLs></PublicAccessBlockConfiguration>", "MalformedXML"},
		{"PUT", "/photos?tagging", "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag><Tag><Key>c</Key><Value>d</Value></Tag></TagSet></Tagging>", ""},
		{"PUT", "/photos?tagging", "<Tagging><TagSet><tag><Key>a</Key><Value>b</Value></tag></TagSet></Tagging>", "MalformedXML"},
		{"POST", "/photos?delete", "<Delete><Object><Key>a/b</Key><VersionID>null</VersionID></Object></Delete>", "MalformedXML"},
		{"POST", "/photos?delete", "<Delete><Object><Key>a/b</Key><Etag>other</Etag></Object></Delete>", "MalformedXML"},
		{"POST", "/photos?delete", `<?xml version="1.0"?><!-- two --><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet><Object><Key>x</Key></Object><Object><Key>y</Key></Object></Delete>`, ""},
	} {
		if _, code, text := w.ask(t, w.org.full, test.method, test.path, test.document, nil); code != test.want {
			t.Errorf("%s %s: %q, want %q: %s", test.path, test.document, code, test.want, text)
		}
	}
	if _, err := client.StatObject(t.Context(), "photos", "a/b", minio.StatObjectOptions{}); err != nil {
		t.Error(err)
	}
}

// objectIn uploads an object k.
func (w *world) objectIn(t *testing.T, client *minio.Client, bucket string) {
	t.Helper()
	if _, err := client.PutObject(t.Context(), bucket, "k", strings.NewReader("x"), 1, minio.PutObjectOptions{SendContentMd5: true}); err != nil {
		t.Fatal(err)
	}
}

// TestManyAttributes: an attribute takes more memory than its text, too.
func TestManyAttributes(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bucketWith(t, w.minio(t, w.org.full), "photos")
	for _, attribute := range []string{` a=""`, ` a=''`, " a \t=\r\n\"\"", ` a=">"`, ` a="'"`} {
		document := "<Delete" + strings.Repeat(attribute, 50_000) + "><Object><Key>x</Key></Object></Delete>"
		if n := mostAttributes([]byte(document)); n < 50_000 {
			t.Errorf("%q is counted %d times", attribute, n)
		}
		if _, code, text := w.ask(t, w.org.full, "POST", "/photos?delete", document, nil); code != "MalformedXML" {
			t.Errorf("%q: %s %s", attribute, code, text)
		}
	}
}

// TestManyQuotes: the quotes in the keys of objects to delete are no attributes.
func TestManyQuotes(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bucketWith(t, w.minio(t, w.org.full), "photos")
	document := "<Delete>" + strings.Repeat("<Object><Key>"+strings.Repeat(`"'`, 30)+"</Key></Object>", 1000) + "</Delete>"
	if status, code, text := w.ask(t, w.org.full, "POST", "/photos?delete", document, nil); status != 200 {
		t.Errorf("%d %s %.200s", status, code, text)
	}
}

// TestLargeDocumentsWait: an organization's large documents are received a few at a time. Those of others do not wait for them.
func TestLargeDocumentsWait(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, o := range []tenant{w.org, w.other} {
		w.bucketWith(t, w.minio(t, o.full), "photos")
	}
	document := "<Delete><Object><Key>x</Key></Object>" + strings.Repeat(" ", largeXML) + "</Delete>"
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}} // sends a body once it is being received
	t.Cleanup(client.CloseIdleConnections)
	send := func(c credentials, body io.Reader) chan int {
		r, err := http.NewRequest("POST", w.server.URL+"/photos?delete", body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(document))
		r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		status := make(chan int, 1)
		go func() {
			defer close(status)
			signed := signer.SignV4(*r, c.id, c.secret, "", "us-east-1")
			signed.Header.Set("Expect", "100-continue")
			if resp, err := client.Do(signed); err == nil {
				status <- resp.StatusCode
				resp.Body.Close()
			}
		}()
		return status
	}
	var held []chan int
	var bodies []*io.PipeWriter
	for range largeXMLs {
		body, sent := io.Pipe()
		held, bodies = append(held, send(w.org.full, body)), append(bodies, sent)
		if _, err := sent.Write([]byte(document[:10])); err != nil {
			t.Fatal(err)
		}
	}
	next := send(w.org.full, strings.NewReader(document))
	if got := <-send(w.other.full, strings.NewReader(document)); got != 200 {
		t.Errorf("another organization's: %d", got)
	}
	select {
	case got := <-next:
		t.Errorf("one more: %d", got)
	case <-time.After(200 * time.Millisecond):
	}
	for _, body := range bodies {
		if _, err := body.Write([]byte(document[10:])); err != nil {
			t.Error(err)
		}
		body.Close()
	}
	for _, status := range append(held, next) {
		if got := <-status; got != 200 {
			t.Errorf("answered %d", got)
		}
	}
}
