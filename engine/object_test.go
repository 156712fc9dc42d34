package engine

import (
	"context"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/objects"
)

func (a *appliance) bucket(t testing.TB, name string) string {
	t.Helper()
	b, err := a.Objects.BucketCreate(a.call(model.ActionBucketCreate), objects.NewBucket{Project: a.project, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

func (a *appliance) put(bucket, key, content string) error {
	_, err := a.Objects.ObjectUpload(context.Background(), a.call(model.ActionObjectUpload),
		objects.Upload{Bucket: bucket, Key: key, Body: strings.NewReader(content), Length: int64(len(content)), ContentType: "text/plain"})
	return err
}

func (a *appliance) mustPut(t testing.TB, bucket, key, content string) {
	t.Helper()
	if err := a.put(bucket, key, content); err != nil {
		t.Fatal(err)
	}
}

func (a *appliance) deleteObject(bucket, key string) error {
	_, err := a.Objects.ObjectDelete(context.Background(), a.call(model.ActionObjectDelete), objects.Deletion{Bucket: bucket, Key: key})
	return err
}
