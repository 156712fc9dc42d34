package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// pageScript uses a bucket as the pages of an application do: a resumable upload with the requests of tus-js-client, a
// plain upload, a change and a download.
const pageScript = `(async () => {
	const [base, bucket, key] = [%q, %q, %q];
	const auth = {Authorization: 'Bearer ' + key}, tus = {...auth, 'Tus-Resumable': '1.0.0'}, saw = {};
	const note = (what, r) => { if (!r.ok) throw new Error(what + ': ' + r.status); return r; };
	const objects = base + '/v1/buckets/' + bucket + '/objects';
	let r = note('create', await fetch(base + '/uploads/' + bucket, {method: 'POST', headers: {...tus, 'Upload-Length': '10',
		'Upload-Metadata': 'key ' + btoa('resumed.txt') + ',content_type ' + btoa('text/plain')}}));
	const at = r.headers.get('Location'), type = {'Content-Type': 'application/offset+octet-stream'};
	note('first half', await fetch(at, {method: 'PATCH', headers: {...tus, ...type, 'Upload-Offset': '0'}, body: '01234'}));
	saw.offset = note('offset', await fetch(at, {method: 'HEAD', headers: tus})).headers.get('Upload-Offset');
	note('second half', await fetch(at, {method: 'PATCH', headers: {...tus, ...type, 'Upload-Offset': saw.offset}, body: '56789'}));
	note('upload', await fetch(objects + '?key=plain.txt', {method: 'POST', headers: {...auth, 'Content-Type': 'text/plain', 'X-Object-Meta-Owner': 'ann'}, body: 'plain'}));
	r = await fetch(objects + '/plain.txt', {method: 'PATCH', headers: {...auth, 'Content-Type': 'application/json'}, body: '{"tags":{"team":"blue"}}'});
	saw.tag = (await note('change', r).json()).data.tags.team;
	const object = (await note('object', await fetch(objects + '/resumed.txt', {headers: auth})).json()).data;
	r = note('download', await fetch(object.download_url));
	saw.text = await r.text();
	saw.same = r.headers.get('ETag') === object.etag;
	r = await fetch(objects + '/none', {headers: auth});
	saw.missing = r.status + ' ' + (await r.json()).error.code + ' ' + (r.headers.get('X-Request-Id') !== null);
	return JSON.stringify(saw);
})().then((text) => { document.title = text; }, (e) => { document.title = 'refused: ' + e; }); ''`

// TestPagesOfOtherOrigins: a page of another origin uses a bucket whose rules allow it, and no other page does.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><title>page</title><link rel=icon href=data:,>")
	}
	app, other := httptest.NewServer(http.HandlerFunc(page)), httptest.NewServer(http.HandlerFunc(page))
	t.Cleanup(app.Close)
	t.Cleanup(other.Close)
	bucket := m.createBucket("files")
	m.must("PATCH", "/buckets/"+bucket, map[string]any{"cors": []map[string]any{
		{"origins": []string{app.URL}, "methods": []string{"GET", "HEAD", "POST", "PUT"}, "headers": []string{"*"}},
	}}, nil)
	b := m.browse(t)
	use := func(origin string) string {
		b.allow(origin)
		b.open(origin + "/")
		b.value(fmt.Sprintf(pageScript, b.base, bucket, m.key))
		b.until("use the bucket", `document.title !== 'page'`)
		return b.value(`document.title`)
	}
	var saw struct {
		Offset, Tag, Text, Missing string
		Same                       bool
	}
	if text := use(app.URL); json.Unmarshal([]byte(text), &saw) != nil {
		t.Fatal(text)
	}
	if saw.Offset != "5" || saw.Tag != "blue" || saw.Text != "0123456789" || !saw.Same || saw.Missing != "404 not_found true" {
		t.Errorf("the page saw %+v", saw)
	}
	if text := use(other.URL); !strings.HasPrefix(text, "refused: TypeError") {
		t.Errorf("the page of another origin saw %s", text)
	}
	for _, problem := range b.forget() {
		if !strings.Contains(problem, "CORS policy") {
			t.Error(problem)
		}
	}
}
