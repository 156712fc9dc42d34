package meta

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"holdfast/engine/model"
)

// keptRecords returns the records in the stored file of format 1.
func keptRecords() (model.Organization, model.Project, model.Key, model.Database, model.Bucket, model.Object) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return model.Organization{ID: "org_1", Name: "default", CreatedAt: at},
		model.Project{ID: "proj_1", Organization: "org_1", Name: "default", CreatedAt: at},
		model.Key{ID: "key_1", Organization: "org_1", Name: "ci", Hash: []byte("hash"), CreatedAt: at},
		model.Database{ID: "db_1", Organization: "org_1", Project: "proj_1", Name: "shop", Status: model.DatabaseAvailable, Major: 15, Port: 7432, Generation: 1, CreatedAt: at},
		model.Bucket{ID: "bucket_1", Organization: "org_1", Project: "proj_1", Name: "files", CreatedAt: at},
		model.Object{Bucket: "bucket_1", Key: "a/b.txt", Version: "01k6zv7r9pxa3c5n8m2q4t6w8y", Blob: "blob-1", SizeBytes: 5, LastModified: at}
}

// keptFile is a file written by the first program with format 1. HOLDFAST_WRITE_FORMAT
// rewrites it, which is only right as long as format 1 is unreleased.
const keptFile = "testdata/format-1.db.gz"

func TestKeptFileIsRead(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOLDFAST_WRITE_FORMAT") != "" {
		writeKept(t)
	}
	path := unpackKept(t)
	db := openChecked(t, path)
	org, project, key, database, bucket, object := keptRecords()
	view(t, db, func(tx *Tx) error {
		gotOrg, err1 := tx.Organizations().Find(ByName, Key("default"))
		gotProject, err2 := tx.Projects().Find(ByName, Key("org_1", "default"))
		gotKey, err3 := tx.Keys().Find(ByHash, []byte("hash"))
		gotDatabase, err4 := tx.Databases().Find(ByName, Key("proj_1", "shop"))
		gotObject, err5 := tx.Object("bucket_1", "a/b.txt")
		gotBucket, err6 := tx.Buckets().Get("bucket_1")
		bucket.ObjectCount, bucket.SizeBytes, bucket.UpdatedAt = 1, 5, gotBucket.UpdatedAt
		for _, pair := range [][2]any{
			{gotOrg, org}, {gotProject, project}, {gotKey, key}, {gotDatabase, database}, {gotBucket, bucket}, {gotObject, object},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("read %+v\nnot  %+v", pair[0], pair[1])
			}
		}
		return errors.Join(err1, err2, err3, err4, err5, err6)
	})
	if n, err := verifyAudit(t, db, "org_1"); n != 3 || err != nil {
		t.Errorf("%d audit entries, %v", n, err)
	}
}

func writeKept(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	org, project, key, database, bucket, object := keptRecords()
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Organizations().Insert(org), tx.Projects().Insert(project), tx.Keys().Insert(key),
			tx.Databases().Insert(database), tx.Buckets().Insert(bucket), putOne(tx, object))
	})
	appendAudits(t, db, "org_1", 0, 3, 0)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(db.Snapshot(z), z.Close(), db.Close(), os.MkdirAll("testdata", 0o755), os.WriteFile(keptFile, packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func unpackKept(t testing.TB) string {
	t.Helper()
	packed, err := os.Open(keptFile)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	path := filepath.Join(t.TempDir(), "meta.db")
	if err = errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}
