package web

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// TestObjectForms changes an object's properties and lock by the forms of its page, and its bucket's versioning.
func TestObjectForms(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	const key = "notes & more.txt"
	if got := c.send(t, http.MethodPut, "/buckets/bucket_1?"+url.Values{"key": {key}}.Encode(), "text/plain", strings.NewReader("text")); got.status != http.StatusNoContent {
		t.Fatal(got.page)
	}
	org, err := c.engine.Access.OrganizationList()
	if err != nil {
		t.Fatal(err)
	}
	stored := func() objects.ObjectView {
		t.Helper()
		o, err := c.engine.Objects.ObjectGet(&model.Call{Organization: org[0].ID}, "bucket_1", key)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	post := func(path string, status int, fields ...string) reply {
		t.Helper()
		form := url.Values{"key": {key}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		got := c.post(t, "/buckets/bucket_1"+path, form)
		if got.status != status {
			t.Errorf("%s %q: %d, want %d", path, fields, got.status, status)
		}
		return got
	}
	properties := []string{"content_type", "text/markdown", "metadata", "owner=ann\r\nnote=a=b \r\n", "tags", "team=blue", "cache_control", "no-store", "content_disposition", ""}
	post("/object", http.StatusSeeOther, properties...)
	o := stored()
	if o.ContentType != "text/markdown" || !maps.Equal(o.Attributes.Metadata, map[string]string{"owner": "ann", "note": "a=b "}) || !maps.Equal(o.Tags, map[string]string{"team": "blue"}) || o.Attributes.CacheControl != "no-store" {
		t.Errorf("stored: %+v %+v", o, o.Attributes)
	}
	page := c.get(t, "/buckets/bucket_1/object?"+url.Values{"key": {key}}.Encode())
	if !strings.Contains(page, "note=a=b \nowner=ann</textarea>") || !strings.Contains(page, `value="text/markdown"`) {
		t.Error("the page's form does not have what is stored")
	}
	for _, wrong := range [][]string{
		{"content_type", "nonsense"}, {"content_type", "text/plain", "metadata", "owner"}, {"content_type", "text/plain", "tags", "a=1\na=2"}, {"content_type", "text/plain", "metadata", "Owner=ann"},
	} {
		if got := post("/object", http.StatusUnprocessableEntity, wrong...); !strings.Contains(got.page, `role="alert"`) || !strings.Contains(got.page, `value="`+wrong[1]+`"`) {
			t.Errorf("%q: the page does not show what was typed", wrong)
		}
	}

	post("/object/lock", http.StatusUnprocessableEntity, "hold", "on") // the bucket has no Object Lock
	post("/lock", http.StatusConflict, "confirm", "files")
	post("/versioning", http.StatusSeeOther, "versioning", "enabled")
	post("/versioning", http.StatusUnprocessableEntity, "versioning", "")
	post("/lock", http.StatusUnprocessableEntity)
	post("/lock", http.StatusUnprocessableEntity, "confirm", "files", "mode", "GOVERNANCE", "days", "x")
	post("/lock", http.StatusSeeOther, "confirm", "files", "mode", "GOVERNANCE", "days", "30")
	if b, err := c.engine.Objects.BucketGet(&model.Call{Organization: org[0].ID}, "bucket_1"); err != nil || b.Lock == nil || b.Lock.Days != 30 {
		t.Errorf("%v: %+v", err, b.Lock)
	}
	until := time.Now().Add(time.Hour).UTC().Format(untilLayout)
	post("/object/lock", http.StatusSeeOther, "version", o.VersionID(), "hold", "on", "mode", "GOVERNANCE", "until", until)
	if l := stored().Lock; l == nil || !l.Hold || l.Mode != model.LockGovernance || l.Until.UTC().Format(untilLayout) != until {
		t.Errorf("the lock is %+v", l)
	}
	post("/object", http.StatusForbidden, append([]string{"content_type", "text/html"}, properties[2:]...)...)
	post("/object", http.StatusSeeOther, "content_type", "text/markdown", "metadata", "owner=ann\nnote=a=b ", "tags", "", "cache_control", "no-store")
	if o := stored(); len(o.Tags) != 0 || o.ContentType != "text/markdown" {
		t.Errorf("stored: %+v", o)
	}
	post("/object/lock", http.StatusForbidden, "mode", "")
	post("/object/lock", http.StatusUnprocessableEntity, "mode", "GOVERNANCE", "until", "tomorrow")
	post("/object/lock", http.StatusSeeOther, "mode", "", "bypass", "on")
	if l := stored().Lock; l.Mode != "" || l.Hold {
		t.Errorf("the lock is %+v", l)
	}
	viewer := c.as(t, "viewer@example.com", model.RoleViewer)
	if got := viewer.post(t, "/buckets/bucket_1/object", url.Values{"key": {key}, "content_type": {"text/html"}}); got.status != http.StatusForbidden || strings.Contains(got.page, "Save the properties") {
		t.Errorf("a viewer: %d", got.status)
	}
}
