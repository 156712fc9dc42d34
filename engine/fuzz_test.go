package engine

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
)

// FuzzCursor tries to walk on with anything but a cursor of the list.
func FuzzCursor(f *testing.F) {
	e := &Engine{signer: newSigner([]byte("a key of the tests, thirty-two b"))}
	call := &model.Call{Organization: "org_1", Operation: model.Operation{Action: model.ActionBackupList}}
	const place = "db_01m7yxgs2r58ws2xgnsw6h7w3d"
	w, err := e.walk(call, model.ActionBackupList, Page{}, "db_1")
	if err != nil {
		f.Fatal(err)
	}
	other, err := e.walk(call, model.ActionBackupList, Page{}, "db_2")
	if err != nil {
		f.Fatal(err)
	}
	given := w.cursorAt(place)
	for _, cursor := range []string{"", "YQ", "AAAA", "????", given, given + "=", given + "A", given[1:], w.cursorAt(""), other.cursorAt(place)} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		got, err := e.walk(call, model.ActionBackupList, Page{Cursor: cursor}, "db_1")
		if known := cursor == "" || cursor == given; known != (err == nil) || cursor == given && got.after != place {
			t.Errorf("%q leads to %q, %v", cursor, got.after, err)
		}
	})
}

// FuzzSignedURL tries to be let in with anything but what was signed, byte for
// byte: to an object or an export.
func FuzzSignedURL(f *testing.F) {
	s := newSigner([]byte("a key of the tests, thirty-two b"))
	now := time.Unix(1_800_000_000, 0)
	end := now.Add(DownloadLife)
	const bucket, key, export = "bucket_1", "a b/ü?", "exp_1"
	path, subject := objectPath(bucket, key), objectSubject(bucket, key)
	object := s.signedPath(path, subject, end)
	exported := s.signedPath(ExportPath+export, exportSubject(export), end)
	last := strings.IndexByte(base64Digits, object[len(object)-1])
	for _, target := range []string{
		object, exported, object + "&", object + "&x=1", strings.Replace(object, "expires=", "expires=+", 1), strings.Replace(object, "%C3", "%c3", 1),
		object[:len(object)-1], object[:len(object)-1] + base64Digits[last^1:][:1], object + "=", object + "\n", "",
		strings.Replace(object, "expires=1", "expires=9", 1), strings.Replace(exported, export, "exp_2", 1),
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if s.admits(path, subject, target, now) != (target == object) {
			t.Errorf("an object by %q", target)
		}
		if s.admits(ExportPath+export, exportSubject(export), target, now) != (target == exported) {
			t.Errorf("an export by %q", target)
		}
		if s.admits(path, subject, target, end) || s.admits(ExportPath+export, exportSubject(export), target, end) {
			t.Errorf("%q is let in at its end", target)
		}
	})
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// No byte of a signed path can be another, be left out, or be preceded by one more.
func TestSignedPathByteForByte(t *testing.T) {
	t.Parallel()
	s, now := newSigner([]byte("a key of the tests, thirty-two b")), time.Unix(1_800_000_000, 0)
	path, subject := ExportPath+"exp_1", exportSubject("exp_1")
	signed := s.signedPath(path, subject, now.Add(DownloadLife))
	if !s.admits(path, subject, signed, now) {
		t.Fatal("what is signed is refused")
	}
	for i := range signed {
		for b := range 256 {
			for _, changed := range []string{
				signed[:i] + string([]byte{byte(b)}) + signed[i+1:], signed[:i] + string([]byte{byte(b)}) + signed[i:], signed[:i] + signed[i+1:],
			} {
				if changed != signed && s.admits(path, subject, changed, now) {
					t.Fatalf("%q is let in for %q", changed, signed)
				}
			}
		}
	}
}
