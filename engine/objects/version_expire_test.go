package objects

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// setExpiry sets the rules of a bucket.
func (s *store) setExpiry(t testing.TB, bucket string, rules ...model.ExpiryRule) {
	t.Helper()
	expiry := model.Expiry(rules)
	if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{Expiry: &expiry}); err != nil {
		t.Fatal(err)
	}
}

// pass lets days go by, and then what has expired be removed.
func (s *store) pass(t testing.TB, days int) {
	t.Helper()
	s.now.Add(int64(time.Duration(days)*24*time.Hour + time.Minute))
	s.believe()
	s.expire(t)
}

// expire has what has expired be removed.
func (s *store) expire(t testing.TB) {
	t.Helper()
	if err := s.ExpireObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestNoncurrentVersionsExpire: versions go once they have not been current for so long, and a delete marker after
// the last of them.
func TestNoncurrentVersionsExpire(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.setExpiry(t, bucket, model.ExpiryRule{Prefix: "k", NoncurrentDays: 3})
	for _, key := range []string{"a", "k", "z"} {
		s.mustPut(t, bucket, key, "one")
		s.mustPut(t, bucket, key, "two")
	}
	s.pass(t, 2)
	s.mustPut(t, bucket, "k", "three") // "two" is noncurrent from now on
	s.wantVersions(t, bucket, "k", "three", "two", "one")
	s.pass(t, 1)
	s.wantVersions(t, bucket, "k", "three", "two")
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	s.pass(t, 2)
	s.wantVersions(t, bucket, "k", "-", "three")
	for _, want := range [][]string{{"-"}, {}} {
		s.pass(t, 1)
		s.wantVersions(t, bucket, "k", want...)
	}
	for _, key := range []string{"a", "z"} {
		s.wantVersions(t, bucket, key, "two", "one")
	}
	if b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket); err != nil || b.ObjectCount != 4 || b.NoncurrentCount != 2 {
		t.Errorf("the bucket counts %d, of them %d noncurrent, %v", b.ObjectCount, b.NoncurrentCount, err)
	}
	if _, err := s.BucketRestore(s.call(model.ActionBucketRestore), bucket, s.core.Clock().Add(-5*24*time.Hour)); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("a restore to when the versions were there: %v", err)
	}
}

// TestLockedVersionsDoNotExpire until they are not locked any more.
func TestLockedVersionsDoNotExpire(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	if _, err := s.BucketUpdate(s.call(model.ActionBucketUpdate), bucket, BucketChange{Lock: &model.BucketLock{Mode: model.LockGovernance, Days: 7}}); err != nil {
		t.Fatal(err)
	}
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 1})
	s.mustPut(t, bucket, "k", "one")
	s.mustPut(t, bucket, "k", "two")
	s.pass(t, 2)
	s.wantVersions(t, bucket, "k", "two", "one")
	s.pass(t, 6)
	s.wantVersions(t, bucket, "k", "two")
}

// TestManyVersionsExpire: a sweep looks at all parts of the versions.
func TestManyVersionsExpire(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	const keys = 2*versionPart + 7
	for i := range keys {
		s.mustPut(t, bucket, fmt.Sprintf("k%05d", i), "x")
		if err := s.delete(bucket, fmt.Sprintf("k%05d", i)); err != nil {
			t.Fatal(err)
		}
	}
	s.setExpiry(t, bucket, model.ExpiryRule{Prefix: "k", NoncurrentDays: 1})
	for days := range 2 { // first the versions, then the markers
		s.pass(t, 2)
		b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
		if want := int64(keys * (1 - days)); err != nil || b.ObjectCount != want {
			t.Errorf("%d are left, want %d, %v", b.ObjectCount, want, err)
		}
	}
}

// TestExpiryWritesTheBucketOnce: not for each version, as its record may be large.
func TestExpiryWritesTheBucketOnce(t *testing.T) { // not parallel: it counts allocated bytes
	s := openStore(t)
	bucket := s.versioned(t, "files")
	rules := []model.ExpiryRule{{Days: 6, NoncurrentDays: 3}}
	for i := range 60 {
		rules = append(rules, model.ExpiryRule{Prefix: fmt.Sprintf("%02d%s", i, strings.Repeat("x", 1000)), Days: 9})
	}
	s.setExpiry(t, bucket, rules...)
	const keys = 100
	for i := range keys {
		s.mustPut(t, bucket, fmt.Sprint(i), "one")
		s.mustPut(t, bucket, fmt.Sprint(i), "two")
	}
	for _, days := range []int{4, 3} { // first the versions, then the objects
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.pass(t, days)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > keys*100_000 {
			t.Errorf("%d bytes are allocated", n)
		}
	}
	b, err := s.BucketGet(s.call(model.ActionBucketGet), bucket)
	if err != nil || b.ObjectCount != 2*keys || b.NoncurrentCount != 2*keys || !b.HistorySince.After(b.CreatedAt) {
		t.Errorf("the bucket counts %d, of them %d noncurrent, with a history since %s, %v", b.ObjectCount, b.NoncurrentCount, b.HistorySince, err)
	}
}

// TestRuleForVersionsIsShortened: a bucket is looked at again at once.
func TestRuleForVersionsIsShortened(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 30})
	s.mustPut(t, bucket, "k", "one")
	s.mustPut(t, bucket, "k", "two")
	s.pass(t, 2)
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 1})
	s.pass(t, 0)
	s.wantVersions(t, bucket, "k", "two")
}

// TestRestoreKeepsVersions: what a restore that is running needs does not expire.
func TestRestoreKeepsVersions(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.mustPut(t, bucket, "k", "one")
	s.mustPut(t, bucket, "k", "two")
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 1})
	if err := s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.BucketRestores().Insert(model.BucketRestore{Bucket: bucket, Status: model.BucketRestoreRunning, StartedAt: s.core.Clock()})
	}); err != nil {
		t.Fatal(err)
	}
	s.pass(t, 2)
	s.wantVersions(t, bucket, "k", "two", "one")
}

// TestExpiredMarkerIsRemembered: what the trash has of a key was deleted when the delete marker says so, also once that has
// expired.
func TestExpiredMarkerIsRemembered(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = 240 * time.Hour })
	bucket := s.versioned(t, "files")
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 3})
	s.mustPut(t, bucket, "k", "one")
	s.mustPut(t, bucket, "other", "one")
	s.now.Add(int64(time.Minute))
	existed := s.core.Clock()
	s.now.Add(int64(time.Minute))
	if err := s.delete(bucket, "k"); err != nil {
		t.Fatal(err)
	}
	s.now.Add(int64(time.Minute))
	deleted := s.core.Clock()
	s.now.Add(int64(time.Minute))
	if err := s.deleteVersion(bucket, "k", s.wantVersions(t, bucket, "k", "-", "one")[1]); err != nil {
		t.Fatal(err)
	}
	s.wantVersions(t, bucket, "k", "-")
	s.pass(t, 4)
	s.wantVersions(t, bucket, "k")
	s.restore(t, bucket, deleted)
	s.mustContain(t, "when it was deleted", bucket, map[string]string{"other": "one"})
	s.restore(t, bucket, existed)
	s.mustContain(t, "when it existed", bucket, map[string]string{"k": "one", "other": "one"})
	if err := s.deleteVersion(bucket, "k", s.wantVersions(t, bucket, "k", "one")[0]); err != nil {
		t.Fatal(err)
	}
	s.pass(t, 11)
	if err := errors.Join(s.PurgeObjects(t.Context()), s.delete(bucket, "other")); err != nil {
		t.Fatal(err)
	}
	s.wantVersions(t, bucket, "other", "-", "one")
	s.pass(t, 4)
	s.wantVersions(t, bucket, "other", "-")
	s.pass(t, 4)
	s.wantVersions(t, bucket, "other")
	if n := s.trashCount(t); n != 0 {
		t.Errorf("%d versions are in the trash, of which nothing was deleted", n)
	}
}

// damageRecord damages the metadata record of a key in "keys", where the current objects are, or the first one in "versions", and
// starts the service again.
func (s *store) damageRecord(t testing.TB, bucket, table, key string) {
	t.Helper()
	if err := s.core.Meta.Flush(); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	file, err := bbolt.Open(filepath.Join(s.cfg.DataDir, core.MetadataFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Update(func(tx *bbolt.Tx) error {
		rows := tx.Bucket([]byte("objects")).Bucket([]byte(bucket)).Bucket([]byte(table))
		row, record := rows.Cursor().Seek([]byte(key))
		row, record = bytes.Clone(row), bytes.Clone(record)
		record[len(record)-2] ^= 1
		return rows.Put(row, record)
	}), file.Close()); err != nil {
		t.Fatal(err)
	}
	s.open(t)
}

// TestVersionsExpireBesideDamage: what cannot be read stays, with the versions of its key, and keeps no others.
func TestVersionsExpireBesideDamage(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	bucket := s.versioned(t, "files")
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 3})
	for _, key := range []string{"a", "damaged", "marked", "z"} {
		s.mustPut(t, bucket, key, "one")
		s.mustPut(t, bucket, key, "two")
	}
	if err := s.delete(bucket, "marked"); err != nil {
		t.Fatal(err)
	}
	_, ids := s.versions(t, bucket, "marked")
	s.damageRecord(t, bucket, "keys", "damaged")
	s.damageRecord(t, bucket, "versions", "marked")
	s.pass(t, 4)
	for _, key := range []string{"a", "z"} {
		s.wantVersions(t, bucket, key, "two")
	}
	for _, id := range ids[1:] {
		if _, err := s.getVersion(bucket, "marked", id); err != nil {
			t.Errorf("a version behind a damaged delete marker: %v", err)
		}
	}
}

// TestBucketOfTheTrashKeepsItsVersions: a bucket that comes back has its rules removed if versions may have expired.
func TestBucketOfTheTrashKeepsItsVersions(t *testing.T) {
	t.Parallel()
	s := openStore(t, func(c *core.Config) { c.ObjectTrashRetention = 240 * time.Hour })
	bucket := s.versioned(t, "files")
	s.setExpiry(t, bucket, model.ExpiryRule{NoncurrentDays: 3})
	s.mustPut(t, bucket, "k", "one")
	s.mustPut(t, bucket, "k", "two")
	s.deleteBucket(t, bucket)
	s.pass(t, 4)
	b, err := s.TrashBucketRestore(t.Context(), s.call(model.ActionTrashBucketRestore), bucket)
	if err != nil || !b.ExpiryOff || len(b.Expiry) > 0 {
		t.Errorf("the bucket came back with %+v, %v", b, err)
	}
	s.pass(t, 1)
	s.wantVersions(t, bucket, "k", "two", "one")
}
