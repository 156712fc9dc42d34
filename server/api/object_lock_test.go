package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/server/api/wire"
)

// TestObjectLock locks versions by the API: nothing removes one, and a retention is only weakened in the mode governance,
// by a key with every permission that asks for it.
func TestObjectLock(t *testing.T) {
	t.Parallel()
	w := open(t)
	plain, id := w.bucket(t, "plain").ID, w.bucket(t, "vault").ID
	do := func(key, method, at, body string) reply {
		t.Helper()
		return w.do(t, request{method: method, path: "/buckets/" + at, key: key, body: body})
	}
	if got := do(w.org.full, "PATCH", id, `{"object_lock":{}}`); got.status != http.StatusConflict {
		t.Errorf("without versioning: %d %s", got.status, got.text)
	}
	b := get[wire.Bucket](t, do(w.org.full, "PATCH", id, `{"versioning":"enabled","object_lock":{"mode":"governance","days":1}}`))
	if b.ObjectLock == nil || text(b.ObjectLock.Mode) != wire.LockGovernance || b.ObjectLock.Days != 1 {
		t.Fatalf("the bucket is %+v", b.ObjectLock)
	}
	if got := do(w.org.full, "PATCH", id, `{"versioning":"suspended"}`); got.status != http.StatusConflict {
		t.Errorf("versioning of a bucket with Object Lock: %d %s", got.status, got.text)
	}
	o := w.put(t, id, "k", "bytes")
	version := id + "/objects/k?version_id=" + o.VersionID
	if o.Retention == nil || o.Retention.Mode != wire.LockGovernance || time.Until(o.Retention.Until) < 23*time.Hour {
		t.Fatalf("a new version has %+v", o.Retention)
	}
	later, sooner := time.Now().Add(48*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, step := range []struct {
		what, key, method, at, body string
		status                      int
	}{
		{"a retained version", w.org.full, "DELETE", version, "", 403},
		{"its metadata", w.org.full, "PATCH", version, `{"metadata":{"a":"b"}}`, 403},
		{"its tags", w.org.full, "PATCH", version, `{"tags":{"a":"b"}}`, 200},
		{"a key that may only read", w.org.read, "PATCH", version, `{"legal_hold":true}`, 403},
		{"a hold", w.org.full, "PATCH", version, `{"legal_hold":true}`, 200},
		{"less, without asking", w.org.full, "PATCH", version, `{"retention":null}`, 403},
		{"less, by a key without the toggle", w.org.careful, "PATCH", version, `{"retention":null,"bypass_governance":true}`, 403},
		{"less", w.org.full, "PATCH", version, `{"retention":null,"bypass_governance":true}`, 200},
		{"a version with a hold", w.org.full, "DELETE", version, "", 403},
		{"more", w.org.full, "PATCH", version, `{"retention":{"mode":"compliance","until":"` + sooner + `"},"legal_hold":false}`, 200},
		{"more still", w.org.full, "PATCH", version, `{"retention":{"mode":"compliance","until":"` + later + `"}}`, 200},
		{"less of compliance", w.org.full, "PATCH", version, `{"retention":{"mode":"compliance","until":"` + sooner + `"},"bypass_governance":true}`, 403},
		{"the bucket", w.org.full, "DELETE", id + "?force=true", "", 403},
		{"the past", w.org.full, "PATCH", version, `{"retention":{"mode":"governance","until":"2001-01-01T00:00:00Z"}}`, 422},
		{"eternity", w.org.full, "PATCH", version, `{"retention":{"mode":"governance","until":"2301-01-01T00:00:00Z"}}`, 422},
		{"no mode", w.org.full, "PATCH", version, `{"retention":{"until":"` + later + `"}}`, 422},
		{"another mode", w.org.full, "PATCH", version, `{"retention":{"mode":"none","until":"` + later + `"}}`, 422},
		{"no version", w.org.full, "PATCH", id + "/objects/none", `{"legal_hold":true}`, 404},
		{"days without a mode", w.org.full, "PATCH", id, `{"object_lock":{"days":1}}`, 422},
		{"a mode without days", w.org.full, "PATCH", id, `{"object_lock":{"mode":"governance"}}`, 422},
		{"days and years", w.org.full, "PATCH", id, `{"object_lock":{"mode":"governance","days":1,"years":1}}`, 422},
		{"too many days", w.org.full, "PATCH", id, `{"object_lock":{"mode":"governance","days":36501}}`, 422},
		{"no retention for new versions", w.org.full, "PATCH", id, `{"object_lock":{}}`, 200},
	} {
		if got := do(step.key, step.method, step.at, step.body); got.status != step.status {
			t.Errorf("%s: %d %s, want %d", step.what, got.status, got.text, step.status)
		}
	}
	o = get[wire.Object](t, do(w.org.full, "GET", version, ""))
	if o.Retention == nil || o.Retention.Mode != wire.LockCompliance || o.Retention.Until.Format(time.RFC3339) != later || o.LegalHold {
		t.Errorf("the version has %+v, hold %t", o.Retention, o.LegalHold)
	}
	if o := w.put(t, id, "free", "x"); o.Retention != nil {
		t.Errorf("a new version has %+v", o.Retention)
	}
	w.put(t, plain, "k", "x")
	if got := do(w.org.full, "PATCH", plain+"/objects/k", `{"legal_hold":true}`); got.status != 422 || !strings.Contains(got.text, "Object Lock") {
		t.Errorf("in a bucket without Object Lock: %d %s", got.status, got.text)
	}
}
