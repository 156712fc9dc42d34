package core

import (
	"strings"
	"testing"
	"time"
)

// FuzzSignedURL tries to download an object or an export with anything but what was
// signed, byte for byte.
func FuzzSignedURL(f *testing.F) {
	s := newSigner([]byte("a key of the tests, thirty-two b"))
	now := time.Unix(1_800_000_000, 0)
	end := now.Add(DownloadLife)
	const export, exportPath = "exp_1", "/v1/exports/exp_1/download"
	path, subject := "/o/bucket_1/a%20b/%C3%BC%3F", "object bucket_1 a b/ü?"
	object := s.SignedPath(path, subject, end)
	exported := s.SignedPath(exportPath, "export exp_1", end)
	last := strings.IndexByte(base64Digits, object[len(object)-1])
	for _, target := range []string{
		object, exported, object + "&", object + "&x=1", strings.Replace(object, "expires=", "expires=+", 1), strings.Replace(object, "%C3", "%c3", 1),
		object[:len(object)-1], object[:len(object)-1] + base64Digits[last^1:][:1], object + "=", object + "\n", "",
		strings.Replace(object, "expires=1", "expires=9", 1), strings.Replace(exported, export, "exp_2", 1),
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if s.Admits(path, subject, target, now) != (target == object) {
			t.Errorf("an object by %q", target)
		}
		if s.Admits(exportPath, "export exp_1", target, now) != (target == exported) {
			t.Errorf("an export by %q", target)
		}
		if s.Admits(path, subject, target, end) || s.Admits(exportPath, "export exp_1", target, end) {
			t.Errorf("%q is let in at its end", target)
		}
	})
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// No byte of a signed path can be changed, omitted or preceded by another.
func TestSignedPathByteForByte(t *testing.T) {
	t.Parallel()
	s, now := newSigner([]byte("a key of the tests, thirty-two b")), time.Unix(1_800_000_000, 0)
	path, subject := "/v1/exports/exp_1/download", "export exp_1"
	signed := s.SignedPath(path, subject, now.Add(DownloadLife))
	if !s.Admits(path, subject, signed, now) {
		t.Fatal("what is signed is refused")
	}
	for i := range signed {
		for b := range 256 {
			for _, changed := range []string{
				signed[:i] + string([]byte{byte(b)}) + signed[i+1:], signed[:i] + string([]byte{byte(b)}) + signed[i:], signed[:i] + signed[i+1:],
			} {
				if changed != signed && s.Admits(path, subject, changed, now) {
					t.Fatalf("%q is let in for %q", changed, signed)
				}
			}
		}
	}
}
