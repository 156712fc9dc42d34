package offsite

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"holdfast/engine/model"
	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
	"holdfast/internal/sealed"
)

// opener is an age identity and what encrypts for it.
type opener struct {
	keys       Keys
	recipients []age.Recipient
}

func newOpener(t *testing.T) opener {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseIdentities(identity.String())
	if err != nil {
		t.Fatal(err)
	}
	return opener{keys, []age.Recipient{identity.Recipient()}}
}

// TestStoreWithoutConditions: a store that refuses conditional creation, or ignores the condition, is prepared for a copy, and
// its master keys are not overwritten.
func TestStoreWithoutConditions(t *testing.T) {
	server := objectstoretest.Servers(t)[0]
	proxy := objectstoretest.NewProxy(t, server.URL)
	for name, value := range server.Environment(proxy.URL) {
		t.Setenv(name, value)
	}
	bucket := server.Bucket(t, false)
	direct, err := objectstore.Open(t.Context(), "s3://"+bucket, objectstore.Options{Getenv: server.Environment("").Getenv})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	for what, act := range map[string]objectstoretest.Act{
		"refuses": objectstoretest.Answer(http.StatusNotImplemented, "NotImplemented"),
		// The condition is signed, so the proxy cannot remove it: it removes the object.
		"ignores": func(x *objectstoretest.Exchange) {
			if err := direct.Delete(context.Background(), strings.TrimPrefix(x.Request().URL.Path, "/"+bucket+"/")); err != nil {
				t.Error(err)
			}
			x.Forward()
		},
	} {
		t.Run(what, func(t *testing.T) {
			proxy.Clear()
			proxy.Inject(objectstoretest.Fault{Method: http.MethodPut, Act: func(x *objectstoretest.Exchange) {
				if x.Request().Header.Get("If-None-Match") == "" {
					x.Forward()
				} else {
					act(x)
				}
			}})
			first, second, third := newOpener(t), newOpener(t), newOpener(t)
			at := Location{URL: "s3://" + bucket + "/" + what, Keys: first.keys}
			if _, err := Initialize(t.Context(), at, first.recipients, time.Now()); err != nil {
				t.Fatal(err)
			}
			if made, err := Rotate(t.Context(), at, second.keys, second.recipients); err != nil || made.MasterKey != 2 {
				t.Fatalf("%+v, %v", made, err)
			}
			before, err := objectstoretest.Read(t.Context(), direct, what+"/"+sealed.KeyName(2), objectstore.Range{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Rotate(t.Context(), at, third.keys, third.recipients); model.CodeOf(err) != model.CodeConflict {
				t.Errorf("a rotation that lacks what opens the newest key: %v", err)
			}
			after, err := objectstoretest.Read(t.Context(), direct, what+"/"+sealed.KeyName(2), objectstore.Range{})
			if err != nil || string(after) != string(before) {
				t.Errorf("the second master key is another one now: %v", err)
			}
		})
	}
}

// TestRotateAgain: a rotation whose answer was lost is repeated. One that would add a key beside an unopened later one changes
// nothing.
func TestRotateAgain(t *testing.T) {
	dir := t.TempDir()
	first, second, third := newOpener(t), newOpener(t), newOpener(t)
	at := Location{URL: "file://" + dir, Keys: first.keys}
	if _, err := Initialize(t.Context(), at, first.recipients, time.Now()); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if made, err := Rotate(t.Context(), at, second.keys, second.recipients); err != nil || made.MasterKey != 2 {
			t.Errorf("try %d: %+v, %v", n+1, made, err)
		}
	}
	_, err := Rotate(t.Context(), at, third.keys, third.recipients)
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), sealed.KeyName(2)) {
		t.Errorf("with another passphrase: %v", err)
	}
	if stored, err := os.ReadDir(filepath.Join(dir, "keys")); err != nil || len(stored) != 3 { // two keys and an announcement
		t.Errorf("%v, %v", stored, err)
	}
	at.Keys = second.keys.And(first.keys)
	if made, err := Rotate(t.Context(), at, third.keys, third.recipients); err != nil || made.MasterKey != 3 {
		t.Errorf("the next rotation: %+v, %v", made, err)
	}
}
