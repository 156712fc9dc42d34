package s3

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/tags"

	"holdfast/engine/model"
	"holdfast/internal/objectstore"
	"holdfast/internal/objectstore/objectstoretest"
)

// TestObjectStore keeps the off-site copy of another holdfast, with and without Object Lock.
func TestObjectStore(t *testing.T) {
	w := open(t)
	c := w.minio(t, w.org.full)
	var buckets atomic.Int32
	for name, locked := range map[string]bool{"plain": false, "locked": true} {
		t.Run(name, func(t *testing.T) {
			objectstoretest.Run(t, objectstoretest.Subject{
				Open: func(t *testing.T, o objectstore.Options) objectstore.Store {
					bucket := fmt.Sprintf("copy-%d", buckets.Add(1))
					if err := c.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{ObjectLocking: locked}); err != nil {
						t.Fatal(err)
					}
					environment := map[string]string{
						"AWS_ENDPOINT_URL": w.server.URL, "AWS_ACCESS_KEY_ID": w.org.full.id,
						"AWS_SECRET_ACCESS_KEY": w.org.full.secret, "AWS_REGION": model.S3Region,
					}
					o.Getenv = func(name string) string { return environment[name] }
					s, err := objectstore.Open(t.Context(), "s3://"+bucket+"/some/prefix", o)
					if err != nil {
						t.Fatal(err)
					}
					return s
				},
				Locks: locked,
				Found: objectstore.Capabilities{
					Conditional: true, Checksums: true, Metadata: true, ListsWrites: true, MayDelete: true, Versioned: locked, Lock: locked,
				},
			})
		})
	}
}

// TestObjectLock: a locked version is removed by nobody, or only by callers with every permission who ask for it.
func TestObjectLock(t *testing.T) {
	t.Parallel()
	w := open(t)
	c, ctx := w.minio(t, w.org.full), context.Background()
	if err := c.MakeBucket(ctx, "vault", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	put := func(key string, o minio.PutObjectOptions) string {
		t.Helper()
		info, err := c.PutObject(ctx, "vault", key, strings.NewReader("x"), 1, o)
		if err != nil {
			t.Fatal(err)
		}
		return info.VersionID
	}
	remove := func(key, version string, bypass bool) string {
		return minio.ToErrorResponse(c.RemoveObject(ctx, "vault", key, minio.RemoveObjectOptions{VersionID: version, GovernanceBypass: bypass})).Code
	}
	governed := put("g", minio.PutObjectOptions{Mode: minio.Governance, RetainUntilDate: until})
	complied := put("c", minio.PutObjectOptions{Mode: minio.Compliance, RetainUntilDate: until})
	held := put("h", minio.PutObjectOptions{LegalHold: minio.LegalHoldEnabled})
	for _, one := range []struct {
		key, version string
		bypass       bool
		want         string
	}{
		{"g", governed, false, "AccessDenied"},
		{"c", complied, false, "AccessDenied"},
		{"c", complied, true, "AccessDenied"},
		{"h", held, true, "AccessDenied"},
		{"g", governed, true, ""},
		{"c", "", false, ""}, // a delete marker
	} {
		if got := remove(one.key, one.version, one.bypass); got != one.want {
			t.Errorf("remove %+v: %q", one, got)
		}
	}
	b, err := w.engine.Objects.BucketNamed(&model.Call{Organization: w.org.id}, "vault")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine.Objects.BucketDelete(&model.Call{Organization: w.org.id, Actor: model.Actor{Type: model.ActorOperator}}, b.ID, true); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("the bucket was deleted with what is locked: %v", err)
	}
	earlier, mode := until.Add(-time.Minute), minio.Compliance
	if err := c.PutObjectRetention(ctx, "vault", "c", minio.PutObjectRetentionOptions{VersionID: complied, Mode: &mode, RetainUntilDate: &earlier, GovernanceBypass: true}); minio.ToErrorResponse(err).Code != "AccessDenied" {
		t.Errorf("compliance was weakened: %v", err)
	}
	if gotMode, gotUntil, err := c.GetObjectRetention(ctx, "vault", "c", complied); err != nil || *gotMode != minio.Compliance || !gotUntil.Equal(until) {
		t.Errorf("retention: %v, %v, %v", gotMode, gotUntil, err)
	}
	off := minio.LegalHoldDisabled
	if err := c.PutObjectLegalHold(ctx, "vault", "h", minio.PutObjectLegalHoldOptions{VersionID: held, Status: &off}); err != nil {
		t.Error(err)
	}
	if got := remove("h", held, false); got != "" {
		t.Errorf("without the hold: %s", got)
	}
	days, unit := uint(1), minio.Days
	if err := c.SetBucketObjectLockConfig(ctx, "vault", &mode, &days, &unit); err != nil {
		t.Error(err)
	}
	if got := remove("d", put("d", minio.PutObjectOptions{}), true); got != "AccessDenied" {
		t.Errorf("the bucket's retention: %q", got)
	}
	if err := c.SuspendVersioning(ctx, "vault"); minio.ToErrorResponse(err).Code != "InvalidBucketState" {
		t.Errorf("suspended: %v", err)
	}
}

// TestTags: tags of objects and buckets.
func TestTags(t *testing.T) {
	t.Parallel()
	w := open(t)
	c, ctx := w.minio(t, w.org.full), context.Background()
	if err := c.MakeBucket(ctx, "files", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutObject(ctx, "files", "k", strings.NewReader("x"), 1, minio.PutObjectOptions{UserTags: map[string]string{"a": "1", "b c": "x=y"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CopyObject(ctx, minio.CopyDestOptions{Bucket: "files", Object: "copy"}, minio.CopySrcOptions{Bucket: "files", Object: "k"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "copy"} {
		if got, err := c.GetObjectTagging(ctx, "files", key, minio.GetObjectTaggingOptions{}); err != nil || got.ToMap()["b c"] != "x=y" || got.Count() != 2 {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
	if stat, err := c.StatObject(ctx, "files", "k", minio.StatObjectOptions{}); err != nil || stat.UserTagCount != 2 {
		t.Errorf("stat: %d, %v", stat.UserTagCount, err)
	}
	other, _ := tags.NewTags(map[string]string{"team": "blue"}, true)
	if err := c.PutObjectTagging(ctx, "files", "k", other, minio.PutObjectTaggingOptions{}); err != nil {
		t.Error(err)
	}
	if got, err := c.GetObjectTagging(ctx, "files", "k", minio.GetObjectTaggingOptions{}); err != nil || got.ToMap()["team"] != "blue" || got.Count() != 1 {
		t.Errorf("replaced: %v, %v", got, err)
	}
	if err := c.RemoveObjectTagging(ctx, "files", "k", minio.RemoveObjectTaggingOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := c.GetBucketTagging(ctx, "files"); minio.ToErrorResponse(err).Code != "NoSuchTagSet" {
		t.Errorf("a bucket without tags: %v", err)
	}
	if err := c.SetBucketTagging(ctx, "files", other); err != nil {
		t.Error(err)
	}
	if got, err := c.GetBucketTagging(ctx, "files"); err != nil || got.ToMap()["team"] != "blue" {
		t.Errorf("the bucket's: %v, %v", got, err)
	}
	many := strings.Repeat("<Tag><Key>k</Key><Value>v</Value></Tag>", model.MaxObjectTags+1)
	for body, want := range map[string]string{
		many: "BadRequest", "<Tag><Key></Key><Value></Value></Tag>": "InvalidTag", "<Tag><Key>a</Key><Value>*</Value></Tag>": "InvalidTag",
		strings.Repeat("<Tag><Key>k</Key><Value>v</Value></Tag>", 2): "InvalidTag",
	} {
		if _, code, _ := w.ask(t, w.org.full, "PUT", "/files/k?tagging", "<Tagging><TagSet>"+body+"</TagSet></Tagging>", nil); code != want {
			t.Errorf("%.60s: %s, want %s", body, code, want)
		}
	}
}
