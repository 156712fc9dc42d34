package remote

import (
	"strings"
	"testing"

	"holdfast/server/api/wire"
)

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, key   string
		matches        bool
		prefix, folder string
	}{
		{"photos/*.jpg", "photos/a.jpg", true, "photos/", "photos/"},
		{"photos/*.jpg", "photos/deep/a.jpg", false, "photos/", "photos/"},
		{"photos/**.jpg", "photos/deep/a.jpg", true, "photos/", "photos/"},
		{"photos/2?/x", "photos/2a/x", true, "photos/2", "photos/"},
		{"photos/2?/x", "photos/2//x", false, "photos/2", "photos/"},
		{`a\*b`, "a*b", true, "a*b", ""},
		{`a\*b`, "axb", false, "a*b", ""},
		{`a\b`, `a\b`, true, `a\b`, ""},
		{"a.b+(c)", "a.b+(c)", true, "a.b+(c)", ""},
		{"a.b", "axb", false, "a.b", ""},
		{"Größe/*", "Größe/数", true, "Größe/", "Größe/"},
		{"?", "数", true, "", ""},
		{"**", "any\nthing/at/all", true, "", ""},
		{"/*", "/a", true, "/", "/"},
	} {
		p := parsePattern(c.pattern)
		if got := p.matches(c.key); got != c.matches || p.prefix != c.prefix || p.folder() != c.folder {
			t.Errorf("%q on %q: %v, prefix %q, folder %q", c.pattern, c.key, got, p.prefix, p.folder())
		}
	}
}

// TestFileName checks that an appliance cannot decide where files go.
func TestFileName(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		"a": true, "a/b.txt": true, "..a": true,
		"": false, ".": false, "..": false, "../a": false, "/etc/passwd": false, "a//b": false, "a/../b": false, "a/": false, "./a": false,
	} {
		if name, err := fileName(key); (err == nil) != ok || ok && name != key {
			t.Errorf("%q: %q, %v", key, name, err)
		}
	}
}

// TestPlaceAll checks that a key that cannot be a file does not affect other
// objects.
func TestPlaceAll(t *testing.T) {
	t.Parallel()
	var objects []wire.Object
	for _, key := range []string{"f/a", "f/a/b", "f/a/b/c", "f//x", "f/../y", "f/z/", "f/A", "f/ok", "f/"} {
		objects = append(objects, wire.Object{Key: key})
	}
	placed, skipped := destinations(objects, "f/")
	var files, left []string
	for _, p := range placed {
		files = append(files, p.name)
	}
	for _, u := range skipped {
		left = append(left, u.name)
	}
	if got := strings.Join(files, " "); got != "a/b/c A ok" {
		t.Errorf("files: %s", got)
	}
	if got := strings.Join(left, " "); got != "f//x f/../y f/z/ f/ f/a f/a/b" {
		t.Errorf("left out: %s", got)
	}
}
