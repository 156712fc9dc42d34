package engine

import (
	"net/url"
	"strconv"
	"testing"
	"time"
)

// FuzzCursor reads any cursor: what is taken for a place is short, and comes
// back as itself.
func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{"", "YQ", "YR", "YQ==", "????", cursorAt("db_01m7yxgs2r58ws2xgnsw6h7w3d"), cursorAt("\x00\xff")} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		place, err := Page{Cursor: cursor}.after()
		if err != nil {
			return
		}
		again, err := Page{Cursor: cursorAt(place)}.after()
		if err != nil || again != place || len(place) > longestPlace {
			t.Errorf("%q stands for %q, and that for %q, %v", cursor, place, again, err)
		}
	})
}

// FuzzSignedURL tries to be let in with anything but the parameters that were
// signed.
func FuzzSignedURL(f *testing.F) {
	s := signer{key: []byte("a key of the tests, thirty-two b")}
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
