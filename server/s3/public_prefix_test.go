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
		"with the whole list":    {[]string{statement("Allow", "s3:GetObject", "/a/*"), statement("Allow", "s3:ListBucket", "")}, nil},
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

// TestPolicyOfListedPrefixes checks what policies mean that let everybody list the keys below prefixes.
func TestPolicyOfListedPrefixes(t *testing.T) {
	t.Parallel()
	const read = `{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":["arn:aws:s3:::photos/a/*","arn:aws:s3:::photos/b*"]}`
	const all = `{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::photos/*"}`
	list := func(effect, action, condition string) string {
		return fmt.Sprintf(`{"Effect":%q,"Principal":{"AWS":["*"]},"Action":[%q],"Resource":["arn:aws:s3:::photos"],"Condition":%s}`, effect, action, condition)
	}
	const both = `{"StringLike":{"s3:prefix":["b*","a/*"]}}`
	for name, c := range map[string]struct {
		statements []string
		known      bool
	}{
		"patterns":                 {[]string{read, list("Allow", "s3:ListBucket", both)}, true},
		"the same texts":           {[]string{read, list("Allow", "s3:ListBucket", `{"StringEquals":{"s3:prefix":["a/","b"]}}`)}, true},
		"a statement each":         {[]string{read, list("Allow", "s3:ListBucket", `{"StringEquals":{"s3:Prefix":"b"}}`), list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":"a/*"}}`)}, true},
		"one is missing":           {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":"a/*"}}`)}, false},
		"another one":              {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":["a/*","b*","c/*"]}}`)}, false},
		"everything":               {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":"*"}}`)}, false},
		"a pattern within":         {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":["a/*/*","b*"]}}`)}, false},
		"a star that is one":       {[]string{read, list("Allow", "s3:ListBucket", `{"StringEquals":{"s3:prefix":["a/*","b*"]}}`)}, false},
		"all objects":              {[]string{all, list("Allow", "s3:ListBucket", both)}, false},
		"no objects":               {[]string{list("Allow", "s3:ListBucket", both)}, false},
		"two operators":            {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":["a/*","b*"]},"StringEquals":{"s3:prefix":["a/","b"]}}`)}, false},
		"two keys":                 {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:prefix":["a/*","b*"],"s3:delimiter":"/"}}`)}, false},
		"another key":              {[]string{read, list("Allow", "s3:ListBucket", `{"StringLike":{"s3:delimiter":["a/*","b*"]}}`)}, false},
		"another operator":         {[]string{read, list("Allow", "s3:ListBucket", `{"StringNotLike":{"s3:prefix":["a/*","b*"]}}`)}, false},
		"denied":                   {[]string{read, list("Allow", "s3:ListBucket", both), list("Deny", "s3:ListBucket", both)}, false},
		"a condition of no action": {[]string{read, list("Allow", "s3:GetBucketLocation", `{"StringLike":{"aws:referer":"a"}}`)}, false},
	} {
		got, err := parsePolicy([]byte(`{"Version":"2012-10-17","Statement":[`+strings.Join(c.statements, ",")+`]}`), "photos")
		if (err == nil) != c.known || got.List != c.known || c.known && !slices.Equal(got.Prefixes, []string{"a/", "b"}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestListedPrefixes: with the policy that `mc anonymous set download` sets for a prefix, everybody lists the keys below the prefix.
func TestListedPrefixes(t *testing.T) {
	t.Parallel()
	w, ctx := open(t), context.Background()
	client := w.minio(t, w.org.full)
	w.bucketWith(t, client, "photos")
	for _, key := range []string{"thumbs/1", "thumbs/2/3", "raw/4", "thumbs"} {
		if _, err := client.PutObject(ctx, "photos", key, bytes.NewReader([]byte("hello")), 5, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	policy := `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:GetBucketLocation"],"Resource":["arn:aws:s3:::photos"]},
		{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::photos"],"Condition":{"StringEquals":{"s3:prefix":["thumbs/"]}}},
		{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:GetObject"],"Resource":["arn:aws:s3:::photos/thumbs/*"]}]}`
	if err := client.SetBucketPolicy(ctx, "photos", policy); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"?list-type=2&prefix=thumbs/": "thumbs/1 thumbs/2/3", "?prefix=thumbs%2F2": "thumbs/2/3", "?list-type=2&prefix=thumbs/&start-after=thumbs/1": "thumbs/2/3",
		"?list-type=2&prefix=thumbs/&delimiter=/": "thumbs/1", "?location": "", "": "AccessDenied", "?prefix=thumbs": "AccessDenied", "?prefix=raw/": "AccessDenied",
		"?prefix=&start-after=thumbs/": "AccessDenied", "?prefix=raw/&prefix=thumbs/": "AccessDenied", "?versions&prefix=thumbs/": "AccessDenied", "?uploads&prefix=thumbs/": "AccessDenied",
	} {
		got, text := w.anonymous(t, "GET", "/photos/"+query, nil)
		refused := got.StatusCode == 403 && strings.Contains(text, "AccessDenied")
		if refused != (want == "AccessDenied") || !refused && (got.StatusCode != 200 || strings.Join(keysIn(text), " ") != want) {
			t.Errorf("GET %s by everybody: %d %s, want %s", query, got.StatusCode, text, want)
		}
	}
	if got, text := w.anonymous(t, "HEAD", "/photos/", nil); got.StatusCode != 200 {
		t.Errorf("HEAD of the bucket by everybody: %d %s", got.StatusCode, text)
	}
}

// keysIn returns the keys in a list.
func keysIn(list string) (keys []string) {
	for _, after := range strings.Split(list, "<Key>")[1:] {
		key, _, _ := strings.Cut(after, "</Key>")
		keys = append(keys, key)
	}
	return keys
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
