package objects

import (
	"context"
	"crypto/md5"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestConcurrentCompletions: a client that sends a completion twice gets the same object twice.
func TestConcurrentCompletions(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	m, err := s.MultipartCreate(s.call(model.ActionUploadCreate), NewMultipart{Bucket: bucket, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	const text = "the only part"
	digest := fmt.Sprintf("%x", md5.Sum([]byte(text)))
	if _, err := s.MultipartPut(t.Context(), s.call(model.ActionUploadAppend), PartUpload{
		Bucket: bucket, Key: "k", Multipart: m.ID, Number: 1, Body: strings.NewReader(text), Length: int64(len(text)),
		Describe: func(p *model.MultipartPart) { p.MD5 = digest },
	}); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	got, errs := make([]model.Object, 8), make([]error, 8)
	for i := range got {
		running.Go(func() {
			got[i], errs[i] = s.MultipartComplete(t.Context(), s.call(model.ActionObjectUpload), Completion{
				Bucket: bucket, Key: "k", Multipart: m.ID, Size: -1, Parts: []CompletedPart{{Number: 1, MD5: digest}},
			})
		})
	}
	running.Wait()
	for i := range got {
		if errs[i] != nil || got[i].Version != got[0].Version {
			t.Errorf("completion %d: %s, %v; want %s", i, got[i].Version, errs[i], got[0].Version)
		}
	}
}

// TestCompletedMeanwhile: an upload whose record is removed while it is looked up, because the metadata follow its
// completion, is complete.
func TestCompletedMeanwhile(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	u := startMultipart(t, s, s.bucket(t, "files"))
	s.recent.mu.Lock() // the lookup asks it whether the upload is complete
	answer := make(chan error)
	go func() {
		_, err := s.MultipartGet(s.call(model.ActionUploadGet), u.bucket, "k", u.id)
		answer <- err
	}()
	time.Sleep(20 * time.Millisecond)
	dropped := make(chan error, 1)
	go func() {
		dropped <- s.core.Meta.Update(func(tx *meta.Tx) error {
			_, err := tx.DropMultipart(u.id)
			return err
		})
	}()
	select {
	case err := <-dropped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second): // it waits for the lookup's snapshot
	}
	s.recent.mu.Unlock()
	if err := <-answer; model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("an upload that is complete: %v", err)
	}
}

// TestPartDuringTheSweep: an upload that gets a part while expired ones are aborted goes on.
func TestPartDuringTheSweep(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.bucket(t, "files")
	var uploads []*uploading
	for range 300 {
		uploads = append(uploads, startMultipart(t, s, bucket))
	}
	s.now.Add(int64(MultipartLife + time.Hour))
	s.believe()
	swept := make(chan error)
	go func() { swept <- s.SweepUploads(t.Context()) }()
	left := func() int {
		list, err := s.MultipartList(s.call(model.ActionUploadGet), bucket)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	testenv.Catch(t, time.Minute, "the first to be gone", func() bool { return left() < len(uploads) })
	last := uploads[len(uploads)-1]
	last.mustPut(1, []byte("part"))
	if err := <-swept; err != nil {
		t.Error(err)
	}
	if n := left(); n != 1 {
		t.Errorf("%d uploads are left", n)
	}
	last.mustComplete([][]byte{[]byte("part")})
}

// TestOthersMultiparts: what is another organization's is not there, also while its claim is held, and nothing waits for it.
func TestOthersMultiparts(t *testing.T) {
	s := openStore(t)
	bucket := s.bucket(t, "bkt")
	m, err := s.MultipartCreate(s.call(model.ActionUploadCreate), NewMultipart{Bucket: bucket, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	release, err := s.core.Claims.Take("upload/"+m.ID, "a request that ends it")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	other := s.call(model.ActionUploadDelete)
	other.Organization = "org_other"
	for what, err := range map[string]error{
		"abort":    s.MultipartAbort(ctx, other, bucket, "k", m.ID),
		"complete": second(s.MultipartComplete(ctx, other, Completion{Bucket: bucket, Key: "k", Multipart: m.ID, Size: -1})),
	} {
		if model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
