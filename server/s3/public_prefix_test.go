package s3

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"holdfast/engine/model"
)

// TestPublicPrefixes: where a policy lets everybody read the objects below prefixes, requests without a signature read those, and
// do nothing else.
func TestPublicPrefixes(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	for _, key := range []string{"a", "ab", "a/c/d", "b/x", "c/x", "a//x", "A/x"} {
		if _, err := client.PutObject(ctx, "photos", key, bytes.NewReader([]byte("hello")), 5, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.SetBucketPolicy(ctx, "photos", publicPolicy("photos", model.PublicRights{Prefixes: []string{"a/", "c/"}})); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"a/b": 200, "a/c/d": 200, "a//x": 200, "c/x": 200, "a/missing": 404,
		"a": 403, "ab": 403, "b/x": 403, "A/x": 403, "missing": 403, "": 403, "?list-type=2&prefix=a/": 403, "?location": 403,
		"a/../b/x": 400, "a/%2e%2e/b/x": 400, "a%2fb": 200, "b/../a/b": 403, "b/x?x=a/": 403, "a/b?acl": 403, "a/b?versionId=null": 403, "a/b?tagging": 403,
	} {
		if got, text := w.anonymous(t, "GET", "/photos/"+path, nil); got.StatusCode != want {
			t.Errorf("GET %s by everybody: %d %s, want %d", path, got.StatusCode, text, want)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "POST"} {
		if got, _ := w.anonymous(t, method, "/photos/a/b", nil); got.StatusCode == 200 || got.StatusCode == 204 {
			t.Errorf("%s by everybody: %d", method, got.StatusCode)
		}
	}
	if got, text := w.anonymous(t, "HEAD", "/photos/a/b", nil); got.StatusCode != 200 {
		t.Errorf("HEAD by everybody: %d %s", got.StatusCode, text)
	}
	if _, _, text := w.ask(t, w.org.full, "GET", "/photos/?policyStatus", "", nil); !strings.Contains(text, "<IsPublic>true<") {
		t.Errorf("the policy's status is %s", text)
	}
	w.ask(t, w.org.full, "PUT", "/photos/?publicAccessBlock", "<PublicAccessBlockConfiguration><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>", nil)
	if got, _ := w.anonymous(t, "GET", "/photos/a/b", nil); got.StatusCode != 403 {
		t.Errorf("blocked: %d", got.StatusCode)
	}
}

// TestPolicyOfPrefixes checks what policies about prefixes mean.
func TestPolicyOfPrefixes(t *testing.T) {
	t.Parallel()
	statement := func(effect, action string, resources ...string) string {
		return fmt.Sprintf(`{"Effect":%q,"Principal":"*","Action":%q,"Resource":["arn:aws:s3:::photos%s"]}`, effect, action, strings.Join(resources, `","arn:aws:s3:::photos`))
	}
	many := []string{}
	for i := range model.MaxPublicPrefixes + 1 {
		many = append(many, fmt.Sprintf("/%c/*", 'a'+i))
	}
	for name, c := range map[string]struct {
		statements []string
		want       []string // prefixes; nil if the policy is refused
	}{
		"two":                    {[]string{statement("Allow", "s3:GetObject", "/b/*", "/a/*")}, []string{"a/", "b/"}},
		"two statements":         {[]string{statement("Allow", "s3:GetObject", "/b/*"), statement("Allow", "s3:GetObject", "/a*")}, []string{"a", "b/"}},
		"one in another":         {[]string{statement("Allow", "s3:GetObject", "/a/b/*", "/a/*", "/a/*")}, []string{"a/"}},
		"with the list":          {[]string{statement("Allow", "s3:GetObject", "/a/*"), statement("Allow", "s3:ListBucket", "")}, []string{"a/"}},
		"in the whole":           {[]string{statement("Allow", "s3:GetObject", "/*", "/a/*")}, []string{}},
		"denied":                 {[]string{statement("Allow", "s3:GetObject", "/a/*", "/b/*"), statement("Deny", "s3:GetObject", "/a/*")}, []string{"b/"}},
		"denied with others":     {[]string{statement("Allow", "s3:GetObject", "/a/b/*", "/b/*"), statement("Deny", "s3:GetObject", "/a*")}, []string{"b/"}},
		"denied with everything": {[]string{statement("Allow", "s3:GetObject", "/a/*"), statement("Deny", "s3:GetObject", "/*")}, []string{}},
		"denied in part":         {[]string{statement("Allow", "s3:GetObject", "/a/*"), statement("Deny", "s3:GetObject", "/a/b/*")}, nil},
		"denied in the whole":    {[]string{statement("Deny", "s3:GetObject", "/a/*"), statement("Allow", "s3:GetObject", "/*")}, nil},
		"one object":             {[]string{statement("Allow", "s3:GetObject", "/a/b")}, nil},
		"a pattern":              {[]string{statement("Allow", "s3:GetObject", "/*/a/*")}, nil},
		"any character":          {[]string{statement("Allow", "s3:GetObject", "/a?/*")}, nil},
		"a variable":             {[]string{statement("Allow", "s3:GetObject", "/${aws:username}/*")}, nil},
		"two stars":              {[]string{statement("Allow", "s3:GetObject", "/a/**")}, nil},
		"dots":                   {[]string{statement("Allow", "s3:GetObject", "/../*")}, nil},
		"writing":                {[]string{statement("Allow", "s3:PutObject", "/a/*")}, nil},
		"all actions":            {[]string{statement("Allow", "s3:*", "/a/*")}, nil},
		"too many":               {[]string{statement("Allow", "s3:GetObject", many...)}, nil},
		"too long":               {[]string{statement("Allow", "s3:GetObject", "/"+strings.Repeat("a", model.MaxPublicPrefix+1)+"*")}, nil},
		"of another bucket":      {[]string{statement("Allow", "s3:GetObject", "-2/a/*")}, nil},
	} {
		got, err := parsePolicy([]byte(`{"Version":"2012-10-17","Statement":[`+strings.Join(c.statements, ",")+`]}`), "photos")
		if (err != nil) != (c.want == nil) || !slices.Equal(got.Prefixes, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got.Prefixes, err, c.want)
		}
		if err != nil && got.Any() {
			t.Errorf("%s is refused, and gives %+v", name, got)
		}
	}
}

// TestPolicyOfRights checks that the policy that stands for rights which were set by the API gives the same.
func TestPolicyOfRights(t *testing.T) {
	t.Parallel()
	for _, may := range []model.PublicRights{
		{Read: true}, {List: true}, {Read: true, List: true}, {Prefixes: []string{"a/"}}, {Prefixes: []string{`"]}<&>`, "b/"}, List: true}, {Prefixes: []string{"ü \\ /"}},
	} {
		got, err := parsePolicy([]byte(publicPolicy("photos", may)), "photos")
		if err != nil || got.Read != may.Read || got.List != may.List || !slices.Equal(got.Prefixes, may.Prefixes) {
			t.Errorf("%+v: %s: %+v, %v", may, publicPolicy("photos", may), got, err)
		}
	}
}
