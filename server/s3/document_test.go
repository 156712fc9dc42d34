package s3

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// TestManyAttributes: an attribute takes more memory than its text, too.
func TestManyAttributes(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bucketWith(t, w.minio(t, w.org.full), "photos")
	document := "<Delete" + strings.Repeat(` a=""`, 100_000) + "><Object><Key>x</Key></Object></Delete>"
	if _, code, text := w.ask(t, w.org.full, "POST", "/photos?delete", document, nil); code != "MalformedXML" {
		t.Errorf("%s %s", code, text)
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
			if resp, err := http.DefaultClient.Do(signer.SignV4(*r, c.id, c.secret, "", "us-east-1")); err == nil {
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
