package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/engine/access"
	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// store is a service with a core of its own, on the test's data directory.
type store struct {
	*Service
	cfg     core.Config
	now     *atomic.Int64 // nanoseconds by which the clock is ahead
	org     string
	project string
}

func openStore(t testing.TB, change ...func(*core.Config)) *store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := new(atomic.Int64)
	cfg := core.Config{
		DataDir: dir, MaxObjectBytes: 1 << 30, AuditKeep: 1 << 20, Rates: core.DefaultRates(), Log: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Now().Add(time.Duration(now.Load())) },
	}
	for _, c := range change {
		c(&cfg)
	}
	s := &store{cfg: cfg, now: now}
	s.open(t)
	people := access.New(s.core)
	if _, err := people.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := people.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	s.org = org.ID
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return tx.Keys().Insert(*s.call(model.ActionKeyCreate).Key) }); err != nil {
		t.Fatal(err)
	}
	projects, err := people.ProjectList(s.call(model.ActionProjectList), core.Filter{}, core.Page{})
	if err != nil {
		t.Fatal(err)
	}
	s.project = projects.Items[0].ID
	t.Cleanup(func() { s.close(t) })
	return s
}

func (s *store) open(t testing.TB) {
	t.Helper()
	s.renew(t)
	if err := errors.Join(s.Open(), s.core.Begin()); err != nil {
		t.Fatal(err)
	}
}

// renew makes the service anew. Its store is not open yet.
func (s *store) renew(t testing.TB) {
	t.Helper()
	db, err := meta.Open(filepath.Join(s.cfg.DataDir, core.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	c, err := core.New(s.cfg, db)
	if err != nil {
		t.Fatal(err)
	}
	s.Service = New(c)
}

func (s *store) close(t testing.TB) {
	t.Helper()
	s.core.Stop()
	s.core.Work.Wait()
	s.core.Audits.Close()
	if err := errors.Join(s.core.Blobs.Close(), s.core.Meta.Close()); err != nil {
		t.Error(err)
	}
}

// believe has the service trust its clock, however far it has leapt.
func (s *store) believe() {
	s.core.Guard.Mu.Lock()
	defer s.core.Guard.Mu.Unlock()
	s.core.Guard.Believed.Time = s.core.WallClock()
}

// call returns a call of a full-access key.
func (s *store) call(action model.Action) *model.Call {
	return &model.Call{
		Operation:    model.Operation{Action: action},
		Actor:        model.Actor{Type: model.ActorKey, ID: "key_test", Name: "test"},
		Organization: s.org,
		Key:          &model.Key{ID: "key_test", Hash: []byte("key_test"), Scopes: model.Scopes(), AllowDangerous: true},
	}
}

func (s *store) bucket(t testing.TB, name string) string {
	t.Helper()
	b, err := s.BucketCreate(s.call(model.ActionBucketCreate), NewBucket{Project: s.project, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

func (s *store) put(bucket, key, content string) error {
	_, err := s.ObjectUpload(context.Background(), s.call(model.ActionObjectUpload),
		Upload{Bucket: bucket, Key: key, Body: strings.NewReader(content), Length: int64(len(content)), ContentType: "text/plain"})
	return err
}

func (s *store) mustPut(t testing.TB, bucket, key, content string) {
	t.Helper()
	if err := s.put(bucket, key, content); err != nil {
		t.Fatal(err)
	}
}

func (s *store) delete(bucket, key string) error {
	_, err := s.ObjectDelete(context.Background(), s.call(model.ActionObjectDelete), Deletion{Bucket: bucket, Key: key})
	return err
}

func (s *store) get(bucket, key string) (string, error) {
	d, err := s.openObject(context.Background(), bucket, key, "")
	if err != nil {
		return "", err
	}
	defer d.Content.Close()
	content, err := io.ReadAll(d.Content)
	if err != nil {
		return "", s.Unreadable(d.Object, err)
	}
	return string(content), nil
}

// content returns every object's content, by key, as lists show it.
func (s *store) content(t testing.TB, bucket string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for page := (core.Page{Limit: core.MaxLimit}); ; {
		list, err := s.ObjectList(s.call(model.ActionObjectList), bucket, "", page)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			content, err := s.get(bucket, o.Key)
			if err != nil {
				t.Errorf("%q: %v", o.Key, err)
			}
			all[o.Key] = content
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			return all
		}
	}
}

// mustHold compares a bucket and its counters with the expected content.
func (s *store) mustHold(t testing.TB, bucket string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, s.content(t, bucket)); diff != "" {
		t.Errorf("bucket (-want +got):\n%.2000s", diff)
	}
	b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
	size := 0
	for _, content := range want {
		size += len(content)
	}
	if err != nil || b.ObjectCount != int64(len(want)) || b.SizeBytes != int64(size) {
		t.Errorf("the bucket counts %d objects of %d bytes, and has %d of %d, %v", b.ObjectCount, b.SizeBytes, len(want), size, err)
	}
	if err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		all, err := tx.ListVersions(bucket, "", "", "", "", len(want)+1)
		if len(all.Versions) != len(want) {
			t.Errorf("a walk finds %d objects, want %d", len(all.Versions), len(want))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// damageAdvice returns the recommendations about damaged objects.
func (s *store) damageAdvice() ([]model.Recommendation, error) { return s.advice("damaged_object") }

func (s *store) advice(code string) ([]model.Recommendation, error) {
	facts := advice.Facts{Now: s.core.Clock(), Limits: s.cfg.Advice, Used: func(model.Metric) int64 { return 0 }}
	err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		for _, d := range JournalDamages(tx, facts.Now) {
			facts.DamagedJournal = append(facts.DamagedJournal, d.FoundAt)
		}
		facts.Damaged, err = DamagedObjects(tx, s.org)
		return err
	})
	return slices.DeleteFunc(advice.Account(facts), func(r model.Recommendation) bool { return r.Code != code }), err
}

func text(size int) string {
	random := make([]byte, size/2+1)
	rand.Read(random)
	return fmt.Sprintf("%x", random)[:size]
}
