package core

import (
	"testing"

	"holdfast/engine/model"
)

// FuzzCursor tries to continue with anything but a cursor of the list.
func FuzzCursor(f *testing.F) {
	c := &Core{Signer: newSigner([]byte("a key of the tests, thirty-two b"))}
	call := &model.Call{Organization: "org_1", Operation: model.Operation{Action: model.ActionBackupList}}
	const place = "db_01m7yxgs2r58ws2xgnsw6h7w3d"
	w, err := c.Walk(call, model.ActionBackupList, Page{}, "db_1")
	if err != nil {
		f.Fatal(err)
	}
	other, err := c.Walk(call, model.ActionBackupList, Page{}, "db_2")
	if err != nil {
		f.Fatal(err)
	}
	given := w.CursorAt(place)
	for _, cursor := range []string{"", "YQ", "AAAA", "????", given, given + "=", given + "A", given[1:], w.CursorAt(""), other.CursorAt(place)} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		got, err := c.Walk(call, model.ActionBackupList, Page{Cursor: cursor}, "db_1")
		if known := cursor == "" || cursor == given; known != (err == nil) || cursor == given && got.After != place {
			t.Errorf("%q leads to %q, %v", cursor, got.After, err)
		}
	})
}
