package meta

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"holdfast/engine/model"
)

// openTest opens a new store; after the test, it checks and closes the store.
func openTest(t testing.TB) *DB {
	t.Helper()
	return openChecked(t, filepath.Join(t.TempDir(), "meta.db"))
}

func openChecked(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := check(db); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("the store is not consistent: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func update(t testing.TB, db *DB, change func(*Tx) error) {
	t.Helper()
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, db *DB, read func(*Tx) error) {
	t.Helper()
	if err := db.ViewFlushed(read); err != nil {
		t.Fatal(err)
	}
}

// check walks every record, index, object, blob and audit chain and reports every
// inconsistency.
func check(db *DB) error {
	return db.ViewFlushed(func(tx *Tx) error {
		var errs []error
		for err := range tx.bolt.tx.Check() {
			errs = append(errs, err)
		}
		errs = append(errs,
			checkTable(tx.Organizations()), checkTable(tx.Projects()), checkTable(tx.Users()), checkTable(tx.Keys()),
			checkTable(tx.SetupLinks()), checkTable(tx.Sessions()), checkTable(tx.Devices()), checkTable(tx.Databases()),
			checkTable(tx.Operations()), checkTable(tx.Backups()), checkTable(tx.Exports()),
			checkTable(tx.Buckets()), checkTable(tx.TrashedBuckets()), checkTable(tx.TrashedObjects()), checkTable(tx.IdempotentRequests()),
			checkTable(tx.Events()), checkTable(tx.Webhooks()), checkTable(tx.Deliveries()),
			checkTotals(tx), checkObjects(tx), checkChains(db, tx))
		return errors.Join(errs...)
	})
}

// checkTable checks that each record has exactly its index entries, and that there are
// no others.
func checkTable[T any](table Table[T]) error {
	var errs []error
	want := make([]int, len(table.indexes))
	err := table.bucket().ForEach(func(id, data []byte) error {
		var record T
		where := fmt.Sprintf("%s/%s", table.name, id)
		if err := decodeRecord(where, data, &record); err != nil {
			return err
		}
		if got := table.id(&record); got != string(id) {
			errs = append(errs, fmt.Errorf("%s has the id %q", where, got))
		}
		for i, key := range table.entries(&record) {
			name := table.indexes[i].name
			if key == nil {
				continue
			}
			want[i]++
			if got := table.indexBucket(name).Get(key); !bytes.Equal(got, id) {
				errs = append(errs, fmt.Errorf("%s: the index %s has %q at %q", where, name, got, key))
			}
		}
		return nil
	})
	errs = append(errs, err)
	for i, ix := range table.indexes {
		if got := countKeys(table.indexBucket(ix.name)); got != want[i] {
			errs = append(errs, fmt.Errorf("the index %s.%s has %d entries, want %d", table.name, ix.name, got, want[i]))
		}
	}
	return errors.Join(errs...)
}

// checkTotals checks that the totals are the sums of the records.
func checkTotals(tx *Tx) error {
	want := map[string]model.Totals{}
	err := errors.Join(sumTotals(want, tx.Databases()), sumTotals(want, tx.Buckets()), sumTotals(want, tx.Uploads()),
		sumTotals(want, tx.Events()), sumTotals(want, tx.Deliveries()))
	return errors.Join(err, tx.bolt.Bucket([]byte(totalsBucket)).ForEach(func(organization, _ []byte) error {
		got, err := tx.Totals(string(organization))
		if err == nil && got != want[string(organization)] {
			err = fmt.Errorf("the totals of %s are %+v, its records make %+v", organization, got, want[string(organization)])
		}
		delete(want, string(organization))
		return err
	}), func() error {
		for organization, totals := range want {
			if totals != (model.Totals{}) {
				return fmt.Errorf("the totals of %s are missing: %+v", organization, totals)
			}
		}
		return nil
	}())
}

func sumTotals[T any](want map[string]model.Totals, table Table[T]) error {
	return table.All(func(record T) error {
		organization, add := table.tally(&record)
		want[organization] = want[organization].Plus(add, 1)
		return nil
	})
}

func countKeys(b *boltBucket) (count int) {
	_ = b.ForEach(func(_, _ []byte) error { count++; return nil })
	return count
}

// recount counts a bucket's versions and bytes by walking them.
func recount(tx *Tx, bucket string) (counted model.Bucket, err error) {
	all, err := tx.ListVersions(bucket, "", "", "", "", 1<<30)
	for _, o := range all.Versions {
		counted.ObjectCount++
		counted.SizeBytes += o.SizeBytes
		if current, err := tx.Object(bucket, o.Key); err != nil || current.Version != o.Version {
			counted.NoncurrentCount++
			counted.NoncurrentBytes += o.SizeBytes
		}
	}
	return counted, err
}

// checkObjects checks that counters, versions and blobs match the existing objects.
func checkObjects(tx *Tx) error {
	var errs []error
	errs = append(errs, tx.Buckets().All(func(b model.Bucket) error {
		got, err := recount(tx, b.ID)
		if got.ObjectCount != b.ObjectCount || got.SizeBytes != b.SizeBytes || got.NoncurrentCount != b.NoncurrentCount || got.NoncurrentBytes != b.NoncurrentBytes {
			errs = append(errs, fmt.Errorf("%s counts %+v, and has %+v", b.ID, b, got))
		}
		return err
	}))
	live, segments := map[string]bool{}, map[uint32]SegmentUse{}
	err := tx.bolt.Bucket([]byte(objectsBucket)).bolt.ForEachBucket(func(id []byte) error {
		from := tx.bolt.Bucket([]byte(droppedBucket)).Get(id)
		_, thereErr := tx.Buckets().Get(string(id))
		_, trashErr := tx.TrashedBuckets().Get(string(id))
		if is := []bool{thereErr == nil, trashErr == nil, from != nil}; is[0] && is[1] || (is[0] || is[1]) == is[2] {
			errs = append(errs, fmt.Errorf("%s must be one of there, trashed and dropped: %v", id, is))
		}
		return checkBucketObjects(tx, id, from, live, segments)
	})
	errs = append(errs, tx.TrashedObjects().All(func(o model.TrashedObject) error {
		if o.Segment == 0 {
			live[o.Blob] = true
			return nil
		}
		use := segments[o.Segment]
		segments[o.Segment] = SegmentUse{Objects: use.Objects + 1, Bytes: use.Bytes + o.SizeBytes}
		return nil
	}))
	return errors.Join(append(errs, err, checkBlobs(tx, live), checkSegments(tx, segments))...)
}

func checkBucketObjects(tx *Tx, id, from []byte, live map[string]bool, segments map[uint32]SegmentUse) error {
	b := tx.bolt.Bucket([]byte(objectsBucket)).Bucket(id)
	keys, ages := b.Bucket([]byte(objectKeys)), &timePartitions{starts: b.Bucket([]byte(objectPartitionStarts)), members: b.Bucket([]byte(objectPartitions)), size: partitionSize}
	var errs []error
	err := keys.ForEach(func(key, data []byte) error {
		object, err := decodeObject(string(id), data)
		if err != nil {
			return err
		}
		if object.Key != string(key) || object.Bucket != string(id) {
			errs = append(errs, fmt.Errorf("the object at %s %q says it is at %s %q", id, key, object.Bucket, object.Key))
		}
		if partition, _ := ages.of([]byte(object.Version)); string(ages.members.Get(memberKey(partition, key))) != object.Version {
			errs = append(errs, fmt.Errorf("the version %s of %q is not in the partition %s", object.Version, key, partition))
		}
		if from == nil || bytes.IndexByte(from, 0) < 0 && bytes.Compare(key, from) >= 0 {
			countLive(object, live, segments)
		}
		return nil
	})
	if versions := findVersions(b); versions != nil {
		errs = append(errs, checkVersions(versions, keys, string(id), from, live, segments))
	}
	if a, b := countKeys(keys), countKeys(ages.members); a != b {
		errs = append(errs, fmt.Errorf("%s has %d keys and %d by age", id, a, b))
	}
	errs = append(errs, checkPartitions(ages), checkLocks(b, string(id)))
	return errors.Join(append(errs, err)...)
}

// checkLocks checks that exactly the versions that were ever locked are indexed.
func checkLocks(b *boltBucket, bucket string) error {
	var errs []error
	want, got := 0, 0
	rows := b.Bucket([]byte(objectLocks))
	for _, name := range []string{objectKeys, objectVersions} {
		versions := b.Bucket([]byte(name))
		if versions == nil {
			continue
		}
		errs = append(errs, versions.ForEach(func(_, data []byte) error {
			o, err := decodeObject(bucket, data)
			row := lockRow(o)
			if err != nil || row == nil {
				return err
			}
			if want++; rows == nil || string(rows.Get(row)) != o.Key {
				return fmt.Errorf("the lock of %q %s is not indexed", o.Key, o.Version)
			}
			return nil
		}))
	}
	if rows != nil {
		got = countKeys(rows)
	}
	if got != want {
		errs = append(errs, fmt.Errorf("%s has %d locked versions, and %d are indexed", bucket, want, got))
	}
	return errors.Join(errs...)
}

func countLive(object model.Object, live map[string]bool, segments map[uint32]SegmentUse) {
	switch {
	case object.DeleteMarker:
	case object.Segment != 0:
		use := segments[object.Segment]
		segments[object.Segment] = SegmentUse{Objects: use.Objects + 1, Bytes: use.Bytes + object.SizeBytes}
	default:
		live[object.Blob] = true
	}
}

// checkVersions checks the table of versions: they are older than the current object, only the newest may be the latest,
// which is then a delete marker, and exactly the null versions are indexed.
func checkVersions(t *versionTable, keys *boltBucket, bucket string, from []byte, live map[string]bool, segments map[uint32]SegmentUse) error {
	var errs []error
	nulls, before := 0, ""
	err := t.rows.ForEach(func(row, data []byte) error {
		o, err := decodeObject(bucket, data)
		if err != nil {
			return err
		}
		key, version := splitVersionRow(row)
		current, currentErr := objectIn(keys, bucket, key)
		latest := before != key && currentErr != nil
		if o.Key != key || o.Version != version || currentErr == nil && current.Version < version ||
			latest != o.NoncurrentAt.IsZero() || latest && !o.DeleteMarker || !o.Versioned && currentErr == nil && !current.Versioned {
			errs = append(errs, fmt.Errorf("the version of %q %s is %+v, and the current one %+v", key, version, o, current))
		}
		if !o.Versioned {
			if nulls++; string(t.nulls.Get([]byte(key))) != version {
				errs = append(errs, fmt.Errorf("%q has another null version than %s", key, version))
			}
		}
		if from == nil || bytes.IndexByte(from, 0) < 0 || bytes.Compare(row, from) >= 0 {
			countLive(o, live, segments)
		}
		before = key
		return nil
	})
	if got := countKeys(t.nulls); got != nulls {
		errs = append(errs, fmt.Errorf("%s has %d null versions, and %d are indexed", bucket, nulls, got))
	}
	return errors.Join(append(errs, err)...)
}

func checkBlobs(tx *Tx, live map[string]bool) error {
	var errs []error
	rows := tx.bolt.Bucket([]byte(liveBlobsBucket))
	discarded := tx.bolt.Bucket([]byte(discardedBlobsBucket))
	for blob := range live {
		if rows.Get([]byte(blob)) == nil {
			errs = append(errs, fmt.Errorf("the blob %s of an object has no row", blob))
		}
	}
	if got := countKeys(rows); got != len(live) {
		errs = append(errs, fmt.Errorf("%d blobs are live, and objects have %d", got, len(live)))
	}
	_ = rows.ForEach(func(blob, _ []byte) error {
		if discarded.Get(blob) != nil {
			errs = append(errs, fmt.Errorf("the blob %s is live and discarded", blob))
		}
		return nil
	})
	return errors.Join(errs...)
}

// checkSegments checks that the use of each segment matches the objects.
func checkSegments(tx *Tx, want map[uint32]SegmentUse) error {
	var errs []error
	for segment, use := range want {
		got := tx.SegmentUse(segment)
		if got.Objects != use.Objects || got.Bytes != use.Bytes || got.EverObjects < use.Objects || got.EverBytes < use.Bytes {
			errs = append(errs, fmt.Errorf("segment %d counts %+v, and objects use %+v", segment, got, use))
		}
	}
	if got := countKeys(tx.bolt.Bucket([]byte(segmentsBucket))); got != len(want) {
		errs = append(errs, fmt.Errorf("%d segments are counted, and objects use %d", got, len(want)))
	}
	return errors.Join(errs...)
}

func checkChains(db *DB, tx *Tx) error {
	return tx.bolt.Bucket([]byte(auditBucket)).bolt.ForEachBucket(func(name []byte) error {
		organization := string(name)
		if organization == noOrganization {
			organization = ""
		}
		v, err := db.VerifyAudit(testChain(0), organization, "")
		return errors.Join(err, faults(v), checkAuditIndex(tx, organization))
	})
}
