package engine

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
)

// FuzzCursor tries to walk on with anything but a cursor of the list.
func FuzzCursor(f *testing.F) {
	e := &Engine{Core: &core.Core{Signer: core.NewSigner([]byte("a key of the tests, thirty-two b"))}}
	call := &model.Call{Organization: "org_1", Operation: model.Operation{Action: model.ActionBackupList}}
	const place = "db_01m7yxgs2r58ws2xgnsw6h7w3d"
	w, err := e.Core.Walk(call, model.ActionBackupList, core.Page{}, "db_1")
	if err != nil {
		f.Fatal(err)
	}
	other, err := e.Core.Walk(call, model.ActionBackupList, core.Page{}, "db_2")
	if err != nil {
		f.Fatal(err)
	}
	given := w.CursorAt(place)
	for _, cursor := range []string{"", "YQ", "AAAA", "????", given, given + "=", given + "A", given[1:], w.CursorAt(""), other.CursorAt(place)} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		got, err := e.Core.Walk(call, model.ActionBackupList, core.Page{Cursor: cursor}, "db_1")
		if known := cursor == "" || cursor == given; known != (err == nil) || cursor == given && got.After != place {
			t.Errorf("%q leads to %q, %v", cursor, got.After, err)
		}
	})
}

// FuzzSignedURL tries to be let in with anything but what was signed, byte for
// byte: to an object or an export.
func FuzzSignedURL(f *testing.F) {
	s := core.NewSigner([]byte("a key of the tests, thirty-two b"))
	now := time.Unix(1_800_000_000, 0)
	end := now.Add(core.DownloadLife)
	const bucket, key, export = "bucket_1", "a b/ü?", "exp_1"
	path, subject := objects.PathOf(bucket, key), objects.ObjectSubject(bucket, key)
	object := s.SignedPath(path, subject, end)
	exported := s.SignedPath(recovery.ExportPath+export, recovery.ExportSubject(export), end)
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
		if s.Admits(recovery.ExportPath+export, recovery.ExportSubject(export), target, now) != (target == exported) {
			t.Errorf("an export by %q", target)
		}
		if s.Admits(path, subject, target, end) || s.Admits(recovery.ExportPath+export, recovery.ExportSubject(export), target, end) {
			t.Errorf("%q is let in at its end", target)
		}
	})
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// No byte of a signed path can be another, be left out, or be preceded by one more.
func TestSignedPathByteForByte(t *testing.T) {
	t.Parallel()
	s, now := core.NewSigner([]byte("a key of the tests, thirty-two b")), time.Unix(1_800_000_000, 0)
	path, subject := recovery.ExportPath+"exp_1", recovery.ExportSubject("exp_1")
	signed := s.SignedPath(path, subject, now.Add(core.DownloadLife))
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
