package core

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/model"
)

// However many addresses, buckets and objects are named, the number of entries that
// anonymous requests add to a log per minute is bounded, and so is the memory for them.
func TestCoalescingIsBounded(t *testing.T) {
	t.Parallel()
	f, now := newAuditCoalescer(), time.Now()
	written := 0
	for n := range 100_000 {
		call := &model.Call{
			Operation: model.Operation{Action: model.ActionObjectDownload}, Actor: model.Anybody(), Organization: "org_1",
			Resource: model.Resource{Type: model.ResourceObject, ID: fmt.Sprintf("bucket_%d", n%300), Name: fmt.Sprint(n)}, IP: fmt.Sprintf("2001:db8:0:%x::1", n),
		}
		written += len(f.admit(&model.AuditEntry{At: now, Organization: "org_1"}, auditBounds(call, nil)))
	}
	if written > anonymousEntries || len(f.sources) > 3*anonymousEntries {
		t.Errorf("%d entries are written, %d sources are noted", written, len(f.sources))
	}
	if rest := f.End(); len(rest) != 1 || rest[0].Details["not_logged"] != strconv.Itoa(100_000-anonymousEntries-1) {
		t.Errorf("at the end: %d entries, %v", len(rest), rest)
	}
}

// Two addresses of one IPv6 network count as one requester.
func TestCoalescingByNetwork(t *testing.T) {
	t.Parallel()
	f, written := newAuditCoalescer(), 0
	for n := range 50 {
		call := &model.Call{Actor: model.DownloadLink(), Organization: "org_1", IP: fmt.Sprintf("2001:db8::%x", n)}
		written += len(f.admit(&model.AuditEntry{}, auditBounds(call, nil)))
	}
	if written != linkAddressEntries {
		t.Errorf("%d entries of one network", written)
	}
}

// The holder of a link or a presigned URL, who needs no key, adds few entries to the log of its maker by reads and by
// what is refused.
func TestCoalescingOfLinks(t *testing.T) {
	t.Parallel()
	upload, read := model.OperationFor(model.ActionObjectUpload), model.OperationFor(model.ActionObjectGet)
	refused := model.Errorf(model.CodeForbidden, "the link is for another key")
	for addresses, want := range map[int]int{1: linkAddressEntries, 100: linkEntries} {
		f, written := newAuditCoalescer(), map[string]int{}
		admit := func(what string, call *model.Call, err error) {
			bounds := auditBounds(call, err)
			if bounds == nil {
				t.Fatalf("the entries of %s have no bound", what)
			}
			written[what] += len(f.admit(&model.AuditEntry{}, bounds))
		}
		for n := range 1000 {
			call := &model.Call{
				Operation: upload, Linked: true, Organization: "org_1", IP: fmt.Sprintf("192.0.2.%d", n%addresses),
				Actor: model.Actor{Type: model.ActorKey, ID: "key_1"}, Key: &model.Key{ID: "key_1"}, Resource: model.Resource{ID: "bucket_1"},
			}
			if auditBounds(call, nil) != nil {
				t.Fatal("uploads are not all logged")
			}
			admit("refused uploads", call, refused)
			call.Operation = read
			admit("reads", call, nil)
			call.Resource.ID = "bucket_2"
			admit("reads of another bucket", call, nil)
			call.Linked = false
			if auditBounds(call, nil) != nil {
				t.Fatal("reads with a key are not all logged")
			}
		}
		for _, what := range []string{"refused uploads", "reads", "reads of another bucket"} {
			if written[what] != want {
				t.Errorf("%d entries of %s by %d addresses", written[what], what, addresses)
			}
		}
	}
}

// The entries of an invalid key, and of requests without a known key, are bounded.
func TestCoalescingOfKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		actor model.Actor
		want  int
	}{
		{model.Actor{Type: model.ActorKey, ID: "key_1"}, keyEntries},
		{model.Actor{Type: model.ActorKey}, keylessAddressEntries},
	} {
		f, written := newAuditCoalescer(), 0
		for range 100 {
			written += len(f.admit(&model.AuditEntry{}, auditBounds(&model.Call{Actor: tt.actor, IP: "192.0.2.1"}, nil)))
		}
		if written != tt.want {
			t.Errorf("%+v: %d entries", tt.actor, written)
		}
	}
}

// TestCoalescingOfStrangers: people who are not signed in add few entries, whatever they try.
func TestCoalescingOfStrangers(t *testing.T) {
	t.Parallel()
	refused := model.Errorf(model.CodeUnauthorized, "the e-mail address or the password is wrong")
	for addresses, want := range map[int]int{1: keylessAddressEntries, 1000: keylessEntries} {
		f, written := newAuditCoalescer(), 0
		for n := range 1000 {
			call := &model.Call{
				Operation: model.Operation{Action: model.ActionSessionCreate}, Actor: model.Actor{Type: model.ActorUser}, IP: fmt.Sprintf("192.0.%d.%d", n%addresses/200, n%addresses%200),
			}
			written += len(f.admit(&model.AuditEntry{}, auditBounds(call, refused)))
		}
		if written != want {
			t.Errorf("%d addresses: %d entries, want %d", addresses, written, want)
		}
	}
	signedIn := &model.Call{Actor: model.Actor{Type: model.ActorUser, ID: "user_1"}}
	if auditBounds(signedIn, nil) != nil {
		t.Error("what people do is not all logged")
	}
}
