package objects

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// lateEnd is a body during which something happens before its second half.
type lateEnd struct {
	io.Reader
	happen func()
}

func newLateEnd(first, second string, happen func()) io.Reader {
	return io.MultiReader(strings.NewReader(first), &lateEnd{strings.NewReader(second), sync.OnceFunc(happen)})
}

func (l *lateEnd) Read(p []byte) (int, error) {
	l.happen()
	return l.Reader.Read(p)
}

// operator returns a call of the operator's.
func (s *store) operator(action model.Action) *model.Call {
	return &model.Call{Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorOperator}, Organization: s.org}
}

// keyCall returns a call of a new key, and what revokes the key.
func (s *store) keyCall(t *testing.T, action model.Action) (call *model.Call, revoke func()) {
	t.Helper()
	people := access.New(s.core)
	_, key, err := people.KeyCreate(s.operator(model.ActionKeyCreate), access.NewKey{Name: "stolen", Scopes: model.Scopes(), AllowDangerous: true})
	if err != nil {
		t.Fatal(err)
	}
	call = s.call(action)
	call.Actor.ID, call.Key, call.Operation = key.ID, &key, model.OperationFor(action)
	return call, func() {
		if _, err := people.KeyRevoke(s.operator(model.ActionKeyRevoke), key.ID); err != nil {
			t.Error(err)
		}
	}
}

// TestRevokedWhileSending: nothing that a key sends is stored once the key is revoked, whenever the request began.
func TestRevokedWhileSending(t *testing.T) {
	testEndWhileSending(t, model.CodeUnauthorized, func(_ *store, revoke func()) { revoke() })
}

// TestFencedWhileSending: nor what anybody sends once another machine has taken over, which does not have it.
func TestFencedWhileSending(t *testing.T) {
	testEndWhileSending(t, model.CodeReadOnly, func(s *store, _ func()) { s.core.SetReadOnly("another machine has taken over") })
}

// testEndWhileSending makes every change that has a body, during which happen ends the time for changes.
func testEndWhileSending(t *testing.T, want model.Code, happen func(s *store, revoke func())) {
	ctx := context.Background()
	upload := func(key string, body io.Reader) Upload {
		return Upload{Key: key, Body: body, Length: 8, ContentType: "text/plain"}
	}
	for name, send := range map[string]func(s *store, bucket string, call *model.Call, body io.Reader) error{
		"upload": func(s *store, bucket string, call *model.Call, body io.Reader) error {
			in := upload("victim", body)
			in.Bucket = bucket
			_, err := s.ObjectUpload(ctx, call, in)
			return err
		},
		"part": func(s *store, bucket string, call *model.Call, body io.Reader) error {
			m, err := s.MultipartCreate(s.call(model.ActionUploadCreate), NewMultipart{Bucket: bucket, Key: "victim"})
			if err != nil {
				return nil
			}
			_, err = s.MultipartPut(ctx, call, PartUpload{
				Bucket: bucket, Key: "victim", Multipart: m.ID, Number: 1, Body: body, Length: 8, Describe: func(*model.MultipartPart) {},
			})
			if parts, readErr := s.partsOf(m.ID); readErr != nil || len(parts) != 0 {
				return fmt.Errorf("parts %v, %v", parts, readErr)
			}
			return err
		},
		"resumable": func(s *store, bucket string, call *model.Call, body io.Reader) error {
			u, err := s.UploadCreate(ctx, s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: "victim", Length: 8})
			if err != nil {
				return nil
			}
			_, err = s.UploadAppend(ctx, call, bucket, u.ID, 0, body)
			if u, readErr := s.upload(call, bucket, u.ID); readErr != nil || u.Offset != 0 {
				return fmt.Errorf("upload at %d, %v", u.Offset, readErr)
			}
			return err
		},
		"link": func(s *store, bucket string, call *model.Call, body io.Reader) error {
			visitor := &model.Call{Operation: model.OperationFor(model.ActionObjectUpload)}
			if err := s.core.ActFor(visitor, s.org, call.Key.ID); err != nil {
				return nil
			}
			in := upload("victim", body)
			in.Bucket, in.linked = bucket, true
			_, err := s.ObjectUpload(ctx, visitor, in)
			return err
		},
		"deletion": func(s *store, bucket string, call *model.Call, body io.Reader) error {
			_, _ = io.Copy(io.Discard, body) // of the request that names the key
			_, err := s.ObjectDelete(ctx, call, Deletion{Bucket: bucket, Key: "victim"})
			return err
		},
		"completion": func(s *store, bucket string, call *model.Call, body io.Reader) error {
			m, err := s.MultipartCreate(s.call(model.ActionUploadCreate), NewMultipart{Bucket: bucket, Key: "victim"})
			if err != nil {
				return nil
			}
			p, err := s.MultipartPut(ctx, s.call(model.ActionUploadAppend), PartUpload{
				Bucket: bucket, Key: "victim", Multipart: m.ID, Number: 1, Body: strings.NewReader("evilEVIL"), Length: 8, Describe: func(*model.MultipartPart) {},
			})
			if err != nil {
				return nil
			}
			_, _ = io.Copy(io.Discard, body)
			_, err = s.MultipartComplete(ctx, call, Completion{
				Bucket: bucket, Key: "victim", Multipart: m.ID, Parts: []CompletedPart{{Number: 1, MD5: p.MD5}}, Size: -1,
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			bucket := s.bucket(t, "bkt")
			s.mustPut(t, bucket, "victim", "good")
			call, revoke := s.keyCall(t, model.ActionObjectUpload)
			err := send(s, bucket, call, newLateEnd("evil", "EVIL", func() { happen(s, revoke) }))
			if model.CodeOf(err) != want {
				t.Errorf("error %v", err)
			}
			s.mustHold(t, bucket, map[string]string{"victim": "good"})
		})
	}
}

// TestEndBeforeTheCompletion: a resumable upload whose caller's time ends between its last byte and its completion keeps its
// bytes. The appliance does not complete it for a key that was revoked; another caller does.
func TestEndBeforeTheCompletion(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(s *store, revoke func())
		want model.Code
	}{
		"revoked": {func(_ *store, revoke func()) { revoke() }, model.CodeUnauthorized},
		"fenced":  {func(s *store, _ func()) { s.core.SetReadOnly("another machine has taken over") }, model.CodeReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			bucket := s.bucket(t, "bkt")
			u, err := s.UploadCreate(t.Context(), s.call(model.ActionUploadCreate), NewUpload{Bucket: bucket, Key: "k", Length: 5})
			if err != nil {
				t.Fatal(err)
			}
			call, revoke := s.keyCall(t, model.ActionObjectUpload)
			if u, err = s.AppendPart(call, u, strings.NewReader("whole")); err != nil {
				t.Fatal(err)
			}
			test.end(s, revoke)
			if _, err := s.CompleteUpload(t.Context(), call, u); model.CodeOf(err) != test.want {
				t.Fatalf("error %v", err)
			}
			_ = s.SweepUploads(t.Context())
			s.mustHold(t, bucket, map[string]string{})
			if test.want == model.CodeReadOnly {
				if u, err := s.upload(call, bucket, u.ID); err != nil || u.Offset != 5 || !s.core.Blobs.HasPart(u.Part) {
					t.Errorf("%+v, %v", u, err)
				}
				return
			}
			if u, err := s.UploadGet(t.Context(), s.call(model.ActionUploadGet), bucket, u.ID); err != nil || !u.Complete {
				t.Errorf("another caller: %+v, %v", u, err)
			}
			s.mustHold(t, bucket, map[string]string{"k": "whole"})
		})
	}
}

// TestExpiredWhileSending: nor once it has expired.
func TestExpiredWhileSending(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "bkt")
	call, _ := s.keyCall(t, model.ActionObjectUpload)
	soon := s.core.Clock().Add(time.Hour)
	if _, err := access.New(s.core).KeyUpdate(s.operator(model.ActionKeyUpdate), call.Key.ID, access.KeyChange{ExpiresAt: &soon}); err != nil {
		t.Fatal(err)
	}
	body := newLateEnd("evil", "EVIL", func() { s.now.Add(int64(2 * time.Hour)) })
	_, err := s.ObjectUpload(t.Context(), call, Upload{Bucket: bucket, Key: "k", Body: body, Length: 8, ContentType: "text/plain"})
	if model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("error %v", err)
	}
	s.mustHold(t, bucket, map[string]string{})
}

// TestPersonWhileSending: nor what a person sends whose session, role or account is gone.
func TestPersonWhileSending(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "bkt")
	people := access.New(s.core)
	for name, test := range map[string]struct {
		end    func(p access.Person) error
		linked bool // by a link, which has no session
		want   model.Code
	}{
		"unchanged": {func(access.Person) error { return nil }, false, ""},
		"signed out": {func(p access.Person) error {
			return people.SignOut(s.operator(model.ActionSessionEnd), p)
		}, false, model.CodeUnauthorized},
		"signed out, link": {func(p access.Person) error {
			return people.SignOut(s.operator(model.ActionSessionEnd), p)
		}, true, ""},
		"viewer": {func(p access.Person) error {
			_, err := people.UserRole(s.operator(model.ActionUserRole), p.User.ID, model.RoleViewer)
			return err
		}, false, model.CodeForbidden},
		"removed": {func(p access.Person) error {
			_, err := people.UserDelete(s.operator(model.ActionUserDelete), p.User.ID)
			return err
		}, true, model.CodeUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			person := s.signIn(t, people, strings.NewReplacer(" ", "-", ",", "").Replace(name)+"@example.com")
			call := &model.Call{
				Operation: model.OperationFor(model.ActionObjectUpload), Actor: model.Actor{Type: model.ActorUser, ID: person.User.ID},
				Organization: s.org, Role: person.User.Role, Session: person.Session.TokenHash,
			}
			if test.linked {
				call.Session = ""
			}
			body := newLateEnd("evil", "EVIL", func() {
				if err := test.end(person); err != nil {
					t.Error(err)
				}
			})
			_, err := s.ObjectUpload(t.Context(), call, Upload{Bucket: bucket, Key: name, Body: body, Length: 8, ContentType: "text/plain"})
			if model.CodeOf(err) != test.want {
				t.Errorf("error %v", err)
			}
			if _, lookupErr := s.object(bucket, name); (lookupErr == nil) != (test.want == "") {
				t.Errorf("object: %v", lookupErr)
			}
		})
	}
}

func (s *store) signIn(t *testing.T, people *access.Service, email string) access.Person {
	t.Helper()
	password := model.NewSecret("correct horse battery staple 9")
	if _, err := people.UserCreate(s.operator(model.ActionUserCreate), access.NewUser{Email: email, Role: model.RoleAdmin, Password: password}); err != nil {
		t.Fatal(err)
	}
	call := &model.Call{Operation: model.Operation{Action: model.ActionSessionCreate}, Actor: model.Actor{Type: model.ActorUser}, IP: "192.0.2.1"}
	token, err := people.SignIn(call, email, password, model.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	person, err := people.WhoIs(token)
	if err != nil {
		t.Fatal(err)
	}
	return person
}

// TestRevocationIsExact: once a revocation is acknowledged, nothing of the key's is stored any more, also of uploads that
// are at their end just then.
func TestRevocationIsExact(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "bkt")
	for round := range 20 {
		call, revoke := s.keyCall(t, model.ActionObjectUpload)
		var begun, senders sync.WaitGroup
		var revoked atomic.Bool
		for n := range 8 {
			begun.Add(1)
			senders.Go(func() {
				first := sync.OnceFunc(begun.Done)
				defer first()
				for last := false; !last; {
					last = revoked.Load()
					mine := *call
					_, err := s.ObjectUpload(context.Background(), &mine, Upload{
						Bucket: bucket, Key: fmt.Sprint(n), Body: strings.NewReader(core.NewRequestID()), Length: -1, ContentType: "text/plain",
					})
					if err != nil {
						return
					}
					first()
				}
			})
		}
		begun.Wait()
		revoke()
		before := s.content(t, bucket)
		revoked.Store(true)
		senders.Wait()
		if after := s.content(t, bucket); !maps.Equal(before, after) {
			t.Fatalf("round %d: stored after the revocation", round)
		}
	}
}
