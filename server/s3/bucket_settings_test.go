package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/cors"
	rules "github.com/minio/minio-go/v7/pkg/lifecycle"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// anonymous sends a request without a signature.
func (w *world) anonymous(t *testing.T, method, path string, header map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, w.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fetch(t, http.DefaultClient, r, header)
}

// fetch sends a request with a header, and returns the response and its body.
func fetch(t *testing.T, client *http.Client, r *http.Request, header map[string]string) (*http.Response, string) {
	t.Helper()
	for name, value := range header {
		r.Header.Set(name, value)
	}
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got, string(text)
}

func (w *world) bucketWith(t *testing.T, client *minio.Client, name string) {
	t.Helper()
	ctx := context.Background()
	if err := client.MakeBucket(ctx, name, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutObject(ctx, name, "a/b", bytes.NewReader([]byte("hello")), 5, minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}

// conditionally returns the policy of a public bucket with a condition.
func conditionally(condition string) string {
	return strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"Condition":`+condition+`,"Sid"`, 1)
}

func publicRead(bucket, effect string) string {
	return strings.Replace(publicPolicy(bucket, model.PublicRights{Read: true}), "Allow", effect, 1)
}

// TestPolicy covers the two policies there are, and what everybody may do then.
func TestPolicy(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client, other := w.minio(t, w.org.full), w.minio(t, w.other.full)
	w.bucketWith(t, client, "photos")
	reads := func(want int) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			if got, text := w.anonymous(t, method, "/photos/a/b", nil); got.StatusCode != want || want == 200 && method == "GET" && text != "hello" {
				t.Errorf("%s by everybody: %d %s, want %d", method, got.StatusCode, text, want)
			}
		}
	}
	reads(403)
	if err := client.SetBucketPolicy(ctx, "photos", publicRead("photos", "Allow")); err != nil {
		t.Fatal(err)
	}
	reads(200)
	if got, err := client.GetBucketPolicy(ctx, "photos"); err != nil || got != publicRead("photos", "Allow") {
		t.Errorf("the policy is %s, %v", got, err)
	}
	for what, path := range map[string]string{"a list": "/photos", "a missing bucket": "/nowhere/a", "another answer": "/photos/a/b?response-content-type=text/html", "a setting": "/photos/a/b?acl"} {
		if got, _ := w.anonymous(t, "GET", path, nil); got.StatusCode != 403 {
			t.Errorf("%s for everybody: %d", what, got.StatusCode)
		}
	}
	if got, _ := w.anonymous(t, "PUT", "/photos/a/b", nil); got.StatusCode != 403 {
		t.Errorf("a write by everybody: %d", got.StatusCode)
	}
	w.bucketWith(t, other, "photos") // a later bucket of that name does not take the public one's place
	reads(200)
	if err := client.SetBucketPolicy(ctx, "photos", publicRead("photos", "Deny")); err != nil {
		t.Fatal(err)
	}
	reads(403)
	if err := other.SetBucketPolicy(ctx, "photos", publicRead("photos", "Allow")); err != nil {
		t.Fatal(err)
	}
	reads(403)
	if err := client.SetBucketPolicy(ctx, "photos", ""); err != nil {
		t.Error(err)
	}
	if got, err := client.GetBucketPolicy(ctx, "photos"); err != nil || got != "" {
		t.Errorf("the policy is %q, %v", got, err)
	}
	for policy, want := range map[string]string{
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), "GetObject", "PutObject", 1):             "NotImplemented",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"*"`, `{"AWS":"*"}`, 1) + " ":           "",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"*"`, `"somebody"`, 1):                  "MalformedPolicy",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), ":photos/", ":others/", 1):               "MalformedPolicy",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"Condition":{"a":1},"Sid"`, 1): "MalformedPolicy",
		conditionally(`{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}`):                                                     "NotImplemented",
		conditionally(`{"Bool":{"aws:SecureTransport":true}}`):                                                           "NotImplemented",
		conditionally(`{"IpAddress":{"aws:SourceIp":"10.0.0.0/40"}}`):                                                    "MalformedPolicy",
		conditionally(`{"IsAddress":{"aws:SourceIp":"10.0.0.0/8"}}`):                                                     "MalformedPolicy",
		conditionally(`{"StringEquals":{"s3:prefix":"a/"}}`):                                                             "MalformedPolicy",
		conditionally(`{"StringEquals":{"s3:ExistingObjectTag/a":"b"}}`):                                                 "NotImplemented",
		// What MinIO's client and console set: download, public and upload.
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:GetBucketLocation","s3:ListBucket"],"Resource":["arn:aws:s3:::photos"]},{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:GetObject"],"Resource":["arn:aws:s3:::photos/*"]}]}`: "",
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::photos","arn:aws:s3:::photos/*"]}]}`:                                                                                                                              "",
		`{"Statement":[{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:PutObject","s3:DeleteObject"],"Resource":["arn:aws:s3:::photos/*"]}]}`:                                                                                                                                        "NotImplemented",
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::photos/*"]}]}`:                                                                                                                                                                   "MalformedPolicy",
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::photos"],"Condition":{"StringEquals":{"s3:prefix":["a/"]}}}]}`:                                                                                                                   "NotImplemented",
		"{}": "MalformedPolicy", "x": "MalformedPolicy",
		// Members that limit what the rest says, or say it twice.
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"NotResource":"arn:aws:s3:::photos/secret/*","Sid"`, 1): "NotImplemented",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"NotAction":"s3:GetObject","Sid"`, 1):                   "NotImplemented",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"NotPrincipal":"*","Sid"`, 1):                           "NotImplemented",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"Until":"2020","Sid"`, 1):                               "MalformedPolicy",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"Condition":{"a":1},"Condition":{},"Sid"`, 1):           "MalformedPolicy",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Sid"`, `"effect":"Deny","Sid"`, 1):                              "MalformedPolicy",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"Statement"`, `"Statement":[{"Effect":"Deny"}],"Statement"`, 1):  "MalformedPolicy",
		strings.Replace(publicPolicy("photos", model.PublicRights{Read: true}), `"*"`, `{"AWS":"*","Service":"backup.amazonaws.com"}`, 1):         "MalformedPolicy",
		`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetBucketLocation","Resource":"arn:aws:s3:::photos"}]}`:                     "NotImplemented",
	} {
		if got := minio.ToErrorResponse(client.SetBucketPolicy(ctx, "photos", policy)).Code; got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
	if got := minio.ToErrorResponse(w.minio(t, w.org.read).SetBucketPolicy(ctx, "photos", publicPolicy("photos", model.PublicRights{Read: true}))).Code; got != "AccessDenied" {
		t.Errorf("with a key that may only read: %s", got)
	}
}

// TestPublicListing: where a policy lets everybody list the keys, requests without a signature list them, and do nothing else.
func TestPublicListing(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	answers := func(what string, want int, method string, paths ...string) {
		t.Helper()
		for _, path := range paths {
			if got, text := w.anonymous(t, method, path, nil); got.StatusCode != want {
				t.Errorf("%s: %s %s by everybody: %d %s, want %d", what, method, path, got.StatusCode, text, want)
			}
		}
	}
	lists := []string{"/photos", "/photos?list-type=2&prefix=a/&delimiter=/", "/photos?location"}
	answers("private", 403, "GET", lists...)
	answers("private", 403, "HEAD", "/photos")
	if err := client.SetBucketPolicy(ctx, "photos", publicPolicy("photos", model.PublicRights{List: true})); err != nil {
		t.Fatal(err)
	}
	answers("listed", 200, "GET", lists...)
	answers("listed", 200, "HEAD", "/photos")
	answers("listed", 403, "GET", "/photos/a/b", "/photos?versions", "/photos?policy", "/photos?uploads", "/nowhere", "/")
	answers("listed", 403, "DELETE", "/photos")
	answers("listed", 403, "PUT", "/photos", "/photos/c")
	if _, text := w.anonymous(t, "GET", "/photos", nil); !strings.Contains(text, "<Key>a/b</Key>") || strings.Contains(text, "Owner") {
		t.Errorf("the list is %s", text)
	}
	both := `{"Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::photos","arn:aws:s3:::photos/*"]},` +
		`{"Effect":"Deny","Principal":"*","Action":"s3:ListBucket","Resource":"arn:aws:s3:::photos"}]}`
	if err := client.SetBucketPolicy(ctx, "photos", both); err != nil {
		t.Fatal(err)
	}
	answers("a denied list", 403, "GET", lists...)
	answers("a denied list", 200, "GET", "/photos/a/b")
}

// TestAccessBlock checks that a blocked bucket is private, whatever asks for it to be public.
func TestAccessBlock(t *testing.T) {
	t.Parallel()
	b := model.Bucket{Public: true, PublicListing: true, Policy: "x"}
	b.Block(&model.PublicAccessBlock{BlockPublicACLs: true})
	if !b.Public {
		t.Error("a switch about ACLs makes the bucket private")
	}
	b.Block(&model.PublicAccessBlock{RestrictPublicBuckets: true})
	if b.Public || b.PublicListing || b.Policy != "" || b.SetPublic(model.PublicRights{Read: true}) == nil || b.SetPublic(model.PublicRights{}) != nil {
		t.Errorf("blocked: %+v", b)
	}
	b.Block(nil)
	if err := b.SetPublic(model.PublicRights{Read: true}); err != nil || !b.Public {
		t.Errorf("without a block: %v", err)
	}
}

// TestCORS covers the rules of a bucket, preflight requests, and what pages of other origins see.
func TestCORS(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	if err := client.SetBucketPolicy(ctx, "photos", publicPolicy("photos", model.PublicRights{Read: true})); err != nil {
		t.Fatal(err)
	}
	ask := func(origin, method, headers string) *http.Response {
		got, _ := w.anonymous(t, "OPTIONS", "/photos/a/b", map[string]string{"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers})
		return got
	}
	if got := ask("https://app.example.com", "PUT", ""); got.StatusCode != 403 {
		t.Errorf("without rules: %d", got.StatusCode)
	}
	allowed := cors.NewConfig([]cors.Rule{{
		AllowedOrigin: []string{"https://*.example.com"}, AllowedMethod: []string{"GET", "PUT"},
		AllowedHeader: []string{"content-*"}, ExposeHeader: []string{"ETag"}, MaxAgeSeconds: 60,
	}})
	if err := client.SetBucketCors(ctx, "photos", allowed); err != nil {
		t.Fatal(err)
	}
	if got, err := client.GetBucketCors(ctx, "photos"); err != nil || len(got.CORSRules) != 1 || got.CORSRules[0].MaxAgeSeconds != 60 {
		t.Errorf("the rules are %+v, %v", got, err)
	}
	for what, c := range map[string]struct {
		origin, method, headers string
		want                    int
	}{
		"allowed":        {"https://app.example.com", "PUT", "Content-Type, content-md5", 200},
		"another origin": {"https://example.org", "PUT", "", 403},
		"another method": {"https://app.example.com", "DELETE", "", 403},
		"another header": {"https://app.example.com", "PUT", "x-amz-acl", 403},
		"no method":      {"https://app.example.com", "PATCH", "", 400},
	} {
		got := ask(c.origin, c.method, c.headers)
		allowed := got.Header.Get("Access-Control-Allow-Origin")
		if got.StatusCode != c.want || (allowed == c.origin) != (c.want == 200) {
			t.Errorf("%s: %d for %q", what, got.StatusCode, allowed)
		}
	}
	for origin, want := range map[string]string{"https://app.example.com": "https://app.example.com", "https://example.org": ""} {
		got, _ := w.anonymous(t, "GET", "/photos/a/b", map[string]string{"Origin": origin})
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); allowed != want || got.StatusCode != 200 {
			t.Errorf("a page of %s: %d for %q", origin, got.StatusCode, allowed)
		}
	}
	preflight := map[string]string{"Origin": "https://example.org", "Access-Control-Request-Method": "PUT"}
	answer := func(bucket string) (status int, text string) {
		got, text := w.anonymous(t, "OPTIONS", "/"+bucket+"/a/b", preflight)
		return got.StatusCode, regexp.MustCompile(`<(RequestId|HostId|Resource)>[^<]*`).ReplaceAllString(strings.ReplaceAll(text, bucket, "NAME"), "")
	}
	if err := client.SetBucketCors(ctx, "photos", nil); err != nil {
		t.Fatal(err)
	}
	status, text := answer("photos")
	if none, other := answer("absent"); none != status || other != text {
		t.Errorf("a preflight tells whether there is a bucket: %d %s, without it %d %s", status, text, none, other)
	}
	if got := ask("https://app.example.com", "PUT", ""); got.StatusCode != 403 {
		t.Errorf("after the rules were removed: %d", got.StatusCode)
	}
}

// TestLifecycleIsKept covers that the rules are answered as they were set, until something else sets the age.
func TestLifecycleIsKept(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	c := rules.NewConfiguration()
	c.Rules = []rules.Rule{
		{ID: "old photos", Status: "Enabled", Expiration: rules.Expiration{Days: 30}},
		{ID: "later", Status: "Disabled", Expiration: rules.Expiration{Days: 7}},
		{Status: "Enabled", AbortIncompleteMultipartUpload: rules.AbortIncompleteMultipartUpload{DaysAfterInitiation: 7}},
	}
	if err := client.SetBucketLifecycle(ctx, "photos", c); err != nil {
		t.Fatal(err)
	}
	says := func() string {
		got, err := client.GetBucketLifecycle(ctx, "photos")
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, r := range got.Rules {
			fmt.Fprintf(&b, "%s %s %d %d; ", r.ID, r.Status, r.Expiration.Days, r.AbortIncompleteMultipartUpload.DaysAfterInitiation)
		}
		return b.String()
	}
	if got := says(); got != "old photos Enabled 30 0; later Disabled 7 0; rule-3 Enabled 0 7; " {
		t.Errorf("the rules are %s", got)
	}
	for what, c := range map[string]rules.Configuration{
		"two rules of one ID": {Rules: []rules.Rule{c.Rules[0], c.Rules[0]}},
		"a long ID":           {Rules: []rules.Rule{{ID: strings.Repeat("i", 256), Status: "Enabled", Expiration: rules.Expiration{Days: 1}}}},
	} {
		if got := minio.ToErrorResponse(client.SetBucketLifecycle(ctx, "photos", &c)).Code; got != "InvalidArgument" {
			t.Errorf("%s: %s", what, got)
		}
	}
	days := 14
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.id, Operation: model.OperationFor(model.ActionBucketUpdate)}
	b, err := w.engine.Objects.BucketNamed(call, "photos")
	if err != nil || b.Expiry.Days() != 30 {
		t.Fatal(b.Expiry, err)
	}
	if _, err := w.engine.Objects.BucketUpdate(call, b.ID, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	if got := says(); got != "rule-1 Enabled 14 0; " {
		t.Errorf("after a change by the API: %s", got)
	}
	document := "<LifecycleConfiguration><Rule><ID>old</ID><Status>Enabled</Status><Filter></Filter><Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>"
	earlier := objects.BucketChange{Expiry: &model.Expiry{}, Lifecycle: document} // as an earlier build has left it
	if _, err := w.engine.Objects.BucketUpdate(call, b.ID, earlier); err != nil {
		t.Fatal(err)
	}
	if got, err := client.GetBucketLifecycle(ctx, "photos"); minio.ToErrorResponse(err).Code != "NoSuchLifecycleConfiguration" {
		t.Errorf("of rules that do not hold any more: %+v, %v", got, err)
	}
}

// TestLifecycleIsBounded: the rules are in the record of the bucket, which every upload writes, also those that remove nothing.
func TestLifecycleIsBounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.bucketWith(t, w.minio(t, w.org.full), "photos")
	rule := func(id int, status, prefix, does string) string {
		return fmt.Sprintf("<Rule><ID>%d</ID><Status>%s</Status><Filter><Prefix>%s</Prefix></Filter>%s</Rule>", id, status, prefix, does)
	}
	const days, abort = "<Expiration><Days>3</Days></Expiration>", "<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>"
	var ordinary, long strings.Builder
	for id := range maxLifecycleRules {
		ordinary.WriteString(rule(id, "Enabled", fmt.Sprintf("%s/%d", strings.Repeat("p", 100), id), days+abort))
		long.WriteString(rule(id, "Disabled", strings.Repeat("p", model.MaxObjectKey), days))
	}
	for what, c := range map[string]struct{ rules, want string }{
		"a long prefix of a rule that is disabled": {rule(1, "Disabled", strings.Repeat(`"`, model.MaxObjectKey+1), days), "InvalidArgument"},
		"a long prefix of unfinished uploads":      {rule(1, "Enabled", strings.Repeat(`"`, model.MaxObjectKey+1), abort), "InvalidArgument"},
		"many long prefixes":                       {long.String(), "InvalidRequest"},
		"many rules":                               {ordinary.String(), ""},
	} {
		document := "<LifecycleConfiguration>" + c.rules + "</LifecycleConfiguration>"
		if _, code, text := w.ask(t, w.org.full, "PUT", "/photos?lifecycle", document, nil); code != c.want {
			t.Errorf("%s: %q, want %q: %.300s", what, code, c.want, text)
		}
	}
}

// TestLifecycle covers the rules there are, and those that are refused.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	set := func(r rules.Rule) string {
		c := rules.NewConfiguration()
		r.ID, r.Status = "x", "Enabled"
		c.Rules = []rules.Rule{r}
		return minio.ToErrorResponse(client.SetBucketLifecycle(ctx, "photos", c)).Code
	}
	if got := set(rules.Rule{Expiration: rules.Expiration{Days: 30}}); got != "" {
		t.Fatal(got)
	}
	if got, err := client.GetBucketLifecycle(ctx, "photos"); err != nil || len(got.Rules) != 1 || got.Rules[0].Expiration.Days != 30 {
		t.Errorf("the rules are %+v, %v", got, err)
	}
	for what, r := range map[string]rules.Rule{
		"a tag":                {RuleFilter: rules.Filter{Tag: rules.Tag{Key: "a", Value: "b"}}, Expiration: rules.Expiration{Days: 30}},
		"a size":               {RuleFilter: rules.Filter{ObjectSizeLessThan: 9}, Expiration: rules.Expiration{Days: 30}},
		"a transition":         {Transition: rules.Transition{Days: 3, StorageClass: "GLACIER"}},
		"a number of versions": {NoncurrentVersionExpiration: rules.NoncurrentVersionExpiration{NoncurrentDays: 3, NewerNoncurrentVersions: 2}},
		"delete markers alone": {Expiration: rules.Expiration{DeleteMarker: true}},
		"another age":          {AbortIncompleteMultipartUpload: rules.AbortIncompleteMultipartUpload{DaysAfterInitiation: 1}},
	} {
		if got := set(r); got != "NotImplemented" {
			t.Errorf("%s: %s", what, got)
		}
	}
	c := rules.NewConfiguration()
	c.Rules = []rules.Rule{
		{ID: "a", Status: "Enabled", RuleFilter: rules.Filter{Prefix: "tmp/"}, Expiration: rules.Expiration{Days: 3}},
		{ID: "b", Status: "Enabled", RuleFilter: rules.Filter{Prefix: "tmp/"}, Expiration: rules.Expiration{Days: 2}},
		{ID: "c", Status: "Disabled", Expiration: rules.Expiration{Days: 1}},
		{ID: "d", Status: "Enabled", NoncurrentVersionExpiration: rules.NoncurrentVersionExpiration{NoncurrentDays: 9}},
		{ID: "e", Status: "Enabled", RuleFilter: rules.Filter{Prefix: "tmp/"}, Expiration: rules.Expiration{DeleteMarker: true}},
	}
	if err := client.SetBucketLifecycle(ctx, "photos", c); err != nil {
		t.Fatal(err)
	}
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.id, Operation: model.OperationFor(model.ActionBucketUpdate)}
	b, err := w.engine.Objects.BucketNamed(call, "photos")
	if want := (model.Expiry{{NoncurrentDays: 9}, {Prefix: "tmp/", Days: 2}}); err != nil || !slices.Equal(b.Expiry, want) {
		t.Errorf("the bucket has %+v, %v", b.Expiry, err)
	}
	if _, err := w.engine.Objects.BucketUpdate(call, b.ID, objects.BucketChange{Expiry: &b.Expiry}); err != nil { // as by the API
		t.Fatal(err)
	}
	if got, err := client.GetBucketLifecycle(ctx, "photos"); err != nil || len(got.Rules) != 2 ||
		got.Rules[0].NoncurrentVersionExpiration.NoncurrentDays != 9 || got.Rules[1].RuleFilter.Prefix != "tmp/" || got.Rules[1].Expiration.Days != 2 {
		t.Errorf("the rules of the API are %+v, %v", got, err)
	}
	if err := client.SetBucketLifecycle(ctx, "photos", rules.NewConfiguration()); err != nil { // removes them
		t.Fatal(err)
	}
	if _, err := client.GetBucketLifecycle(ctx, "photos"); minio.ToErrorResponse(err).Code != "NoSuchLifecycleConfiguration" {
		t.Errorf("after the rules were removed: %v", err)
	}
}
