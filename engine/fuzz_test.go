package engine

import (
	"net/url"
	"strconv"
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

// FuzzSignedURL tries to be let in with anything but the parameters that were
// signed.
func FuzzSignedURL(f *testing.F) {
	s := newSigner([]byte("a key of the tests, thirty-two b"))
	now := time.Unix(1_800_000_000, 0)
	end := now.Add(DownloadLife)
	signed, err := url.Parse(s.signedPath("/o", "bucket/key", end))
	if err != nil {
		f.Fatal(err)
	}
	expires, signature := signed.Query().Get("expires"), signed.Query().Get("signature")
	f.Add("bucket/key", expires, signature)
	f.Add("bucket/key", "+"+expires, signature)
	f.Add("bucket/key2", expires, signature)
	f.Add("key", expires+"\nbucket/", signature)
	f.Add("bucket/key", "9999999999", signature)
	f.Add("bucket/key", expires, signature[:len(signature)-1])
	f.Fuzz(func(t *testing.T, subject, at, mac string) {
		admitted := s.admits(subject, at, mac, now)
		moment, err := strconv.ParseInt(at, 10, 64)
		if admitted && (subject != "bucket/key" || err != nil || moment != end.Unix()) {
			t.Errorf("%q until %q is let in by %q", subject, at, mac)
		}
		if s.admits(subject, at, mac, end) {
			t.Errorf("%q until %q is let in at its end", subject, at)
		}
	})
}
