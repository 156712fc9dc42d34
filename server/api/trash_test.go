package api

import (
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// TestTrash deletes a bucket and an object, brings them back, and removes them for good.
func TestTrash(t *testing.T) {
	w := open(t, func(c *core.Config) { c.ObjectTrashRetention = time.Hour })
	manage := w.key(t, w.org.organization, access.NewKey{Scopes: []model.Scope{model.ScopeTrashManage}})
	ask := func(method, path, key string, status int) reply {
		t.Helper()
		got := w.do(t, request{method: method, path: path, key: key})
		if got.status != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, got.status, got.msg, status)
		}
		return got
	}
	bucket := w.bucket(t, "box")
	object := "/buckets/" + bucket.ID + "/objects"
	trashed := func() string {
		t.Helper()
		w.do(t, request{method: "POST", path: object + "?key=a/b", key: w.org.full, body: "bytes"})
		ask("DELETE", object+"/a/b", w.org.full, 200)
		found := get[[]wire.TrashedObject](t, ask("GET", "/trash/objects", manage, 200))
		if len(found) != 1 || found[0].Key != "a/b" || found[0].BucketID != bucket.ID || found[0].SizeBytes != 5 {
			t.Fatalf("%+v", found)
		}
		return "/trash/objects/" + found[0].ID
	}
	at := trashed()
	if others := get[[]wire.TrashedObject](t, ask("GET", "/trash/objects", w.other.full, 200)); len(others) != 0 {
		t.Errorf("another organization sees %+v", others)
	}
	ask("POST", at+"/restore", w.other.full, 404)
	ask("DELETE", at, w.other.full, 404)
	ask("DELETE", at, manage, 403)
	if back := get[wire.NamedReference](t, ask("POST", at+"/restore", manage, 200)); back.Name != "a/b" {
		t.Errorf("%+v", back)
	}
	ask("GET", object+"/a/b", w.org.read, 200)
	ask("DELETE", object+"/a/b", w.org.full, 200)
	ask("DELETE", at, w.org.full, 200)
	at = trashed()
	ask("DELETE", at, w.org.full, 200)
	ask("POST", at+"/restore", manage, 404)

	ask("DELETE", "/buckets/"+bucket.ID, w.org.full, 200)
	at = "/trash/buckets/" + bucket.ID
	ask("DELETE", "/projects/"+w.org.project, w.org.full, 409)
	ask("DELETE", at, w.other.full, 404)
	ask("POST", at+"/restore", manage, 200)
	ask("DELETE", "/buckets/"+bucket.ID, w.org.full, 200)
	ask("DELETE", at, w.org.full, 200)
	ask("POST", at+"/restore", manage, 404)

	spare := w.bucket(t, "spare")
	ask("DELETE", "/buckets/"+spare.ID, w.org.full, 200)
	ask("DELETE", "/trash", w.org.careful, 403)
	if emptied := get[wire.EmptiedTrash](t, ask("DELETE", "/trash", w.org.full, 200)); emptied != (wire.EmptiedTrash{Buckets: 1}) {
		t.Errorf("%+v", emptied)
	}
}
