package s3

import (
	"context"
	"strings"
	"testing"

	"holdfast/engine/model"
)

// TestACL covers that an ACL which says what holds anyway is confirmed, and any other refused.
func TestACL(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client, full := w.minio(t, w.org.full), w.org.full
	w.bucketWith(t, client, "photos")
	w.bucketWith(t, client, "thumbs")
	if err := client.SetBucketPolicy(ctx, "thumbs", publicPolicy("thumbs", model.PublicRights{Prefixes: []string{"a/"}})); err != nil {
		t.Fatal(err)
	}
	owns := `<Grant><Grantee><ID>` + w.org.id + `</ID></Grantee><Permission>FULL_CONTROL</Permission></Grant>`
	reads := `<Grant><Grantee><URI>` + allUsers + `</URI></Grantee><Permission>READ</Permission></Grant>`
	document := func(grants string) string {
		return `<AccessControlPolicy><AccessControlList>` + grants + `</AccessControlList></AccessControlPolicy>`
	}
	for _, c := range []struct {
		path, canned, body string
		status             int
		code               string
	}{
		{"/photos/a/b?acl", "private", "", 200, ""},
		{"/photos?acl", "private", "", 200, ""},
		{"/photos/a/b?acl", "", document(owns), 200, ""},
		{"/photos/a/b?acl", "public-read", "", 501, "NotImplemented"},
		{"/photos/a/b?acl", "", document(owns + reads), 501, "NotImplemented"},
		{"/photos/a/b?acl", "", document(strings.Replace(reads, "READ", "WRITE", 1)), 501, "NotImplemented"},
		{"/photos/a/b?acl", "", document(strings.Replace(owns, w.org.id, w.other.id, 1)), 501, "NotImplemented"},
		{"/photos/a/b?acl", "", "", 400, "MalformedXML"},
		{"/photos/a/b?acl", "publik", "", 400, "InvalidArgument"},
		{"/photos/none?acl", "private", "", 404, "NoSuchKey"},
		{"/theirs?acl", "private", "", 404, "NoSuchBucket"},
		{"/thumbs/a/b?acl", "public-read", "", 200, ""},
		{"/thumbs/a/b?acl", "", document(owns + reads), 200, ""},
		{"/thumbs/a/b?acl", "private", "", 501, "NotImplemented"},
		{"/thumbs?acl", "private", "", 200, ""},
		{"/thumbs?acl", "public-read", "", 501, "NotImplemented"},
		{"/thumbs/a/new", "public-read", "x", 200, ""},
		{"/thumbs/b", "public-read", "x", 501, "NotImplemented"},
		{"/photos/new", "public-read", "x", 501, "NotImplemented"},
		{"/fresh", "public-read", "", 501, "NotImplemented"}, // a bucket
	} {
		var header []string
		if c.canned != "" {
			header = []string{"X-Amz-Acl", c.canned}
		}
		if status, code, text := w.ask(t, full, "PUT", c.path, c.body, nil, header...); status != c.status || code != c.code {
			t.Errorf("%s %q %s: %d %s %s", c.path, c.canned, c.body, status, code, text)
		}
	}
}
