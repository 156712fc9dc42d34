package meta

import (
	"errors"
	"slices"
	"testing"

	"holdfast/engine/model"
)

// TestNoNameHoldsTheSeparator: an index key with a separator in a part could be mistaken
// for another. No accepted name contains one, and ids are generated.
func TestNoNameHoldsTheSeparator(t *testing.T) {
	t.Parallel()
	_, emailErr := model.NormalizeEmail("email", "a\x00b@example.com")
	for what, err := range map[string]error{
		"label":    model.ValidateLabel("name", "a\x00b"),
		"database": model.ValidateDatabaseName("name", "a\x00b"),
		"bucket":   model.ValidateBucketName("name", "abc\x00def"),
		"email":    emailErr,
	} {
		if err == nil {
			t.Errorf("a %s may hold the separator", what)
		}
	}
}

func TestBucketNamesAreUnique(t *testing.T) {
	t.Parallel()
	names := bucketNames()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("two share a name: %q", names)
	}
}

// TestEveryTable stores a record in each table and finds it through each of its indexes.
func TestEveryTable(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Organizations().Insert(model.Organization{ID: "org_1", Name: "o"}),
			tx.Projects().Insert(project("proj_1", "org_1", "p")),
			tx.Users().Insert(model.User{ID: "user_1", Organization: "org_1", Email: "a@example.com"}),
			tx.Keys().Insert(model.Key{ID: "key_1", Organization: "org_1", Hash: []byte{0, 255, 0}}),
			tx.SetupLinks().Insert(model.SetupLink{TokenHash: []byte{0, 1, 255}, Organization: "org_1"}),
			tx.Sessions().Insert(model.Session{TokenHash: "5e", User: "user_1"}),
			tx.Devices().Insert(model.DeviceAuthorization{ID: "dev_1", DeviceHash: []byte{0, 1}, UserHash: []byte{0, 2}}),
			tx.Databases().Insert(model.Database{ID: "db_1", Organization: "org_1", Project: "proj_1", Name: "d"}),
			tx.Databases().Insert(model.Database{ID: "db_2", Organization: "org_1", Project: "proj_1", Name: "d", Trash: &model.Trash{}}),
			tx.Operations().Insert(model.DatabaseOperation{ID: "op_1", Database: "db_1"}),
			tx.Backups().Insert(model.Backup{ID: "bkp_1", Database: "db_1"}),
			tx.Buckets().Insert(model.Bucket{ID: "bucket_1", Organization: "org_1", Project: "proj_1", Name: "bbb"}),
		)
	})
	view(t, db, func(tx *Tx) error {
		_, linkErr := tx.SetupLinks().Get("\x00\x01\xff")
		return errors.Join(linkErr,
			found(tx.Organizations(), "org_1", ByName, Key("o")),
			found(tx.Projects(), "proj_1", ByName, Key("org_1", "p")),
			listed(tx.Projects(), "proj_1", ByOrganization, Key("org_1")),
			found(tx.Users(), "user_1", ByName, Key("a@example.com")),
			listed(tx.Users(), "user_1", ByOrganization, Key("org_1")),
			found(tx.Keys(), "key_1", ByHash, []byte{0, 255, 0}),
			listed(tx.Keys(), "key_1", ByOrganization, Key("org_1")),
			listed(tx.Sessions(), "5e", ByUser, Key("user_1")),
			found(tx.Devices(), "dev_1", ByHash, []byte{0, 1}),
			found(tx.Devices(), "dev_1", ByUserCode, []byte{0, 2}),
			found(tx.Databases(), "db_1", ByName, Key("proj_1", "d")),
			listed(tx.Databases(), "db_1", ByOrganization, Key("org_1")),
			listed(tx.Databases(), "db_2", InTrash, Key("org_1")),
			listed(tx.Operations(), "op_1", ByDatabase, Key("db_1")),
			listed(tx.Backups(), "bkp_1", ByDatabase, Key("db_1")),
			found(tx.Buckets(), "bucket_1", ByName, Key("proj_1", "bbb")),
			listed(tx.Buckets(), "bucket_1", ByOrganization, Key("org_1")),
		)
	})
}

func found[T any](table Table[T], id, index string, key []byte) error {
	record, err := table.Find(index, key)
	if err == nil && table.id(&record) != id {
		err = errors.New("found another than " + id)
	}
	return err
}

func listed[T any](table Table[T], id, index string, key []byte) error {
	records, more, err := table.Newest(index, key, "", 5)
	if err == nil && (more || len(records) != 1 || table.id(&records[0]) != id) {
		err = errors.New("listed another than " + id)
	}
	return err
}

// TestProjectsAreNotRead: a bucket is found in the projects of its organization, and the oldest of these, without reading
// any of them: that would keep others from writing, and a damaged one would hide the buckets of all.
func TestProjectsAreNotRead(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(
			tx.Projects().Insert(project("proj_1", "org_1", "a")),
			tx.Projects().Insert(project("proj_2", "org_1", "b")),
			tx.Projects().Insert(project("proj_0", "org_2", "a")),
			tx.Buckets().Insert(model.Bucket{ID: "bucket_1", Organization: "org_1", Project: "proj_2", Name: "photos"}))
	})
	damageRecord(t, db, "projects", "proj_1")
	view(t, db, func(tx *Tx) error {
		first, err1 := tx.FirstProject("org_1")
		b, err2 := tx.BucketNamed("org_1", "photos")
		if first != "proj_1" || b.ID != "bucket_1" {
			t.Errorf("the oldest project is %q, the bucket %q", first, b.ID)
		}
		if _, err := tx.BucketNamed("org_2", "photos"); !errors.Is(err, ErrNotFound) {
			t.Errorf("in another organization: %v", err)
		}
		if _, err := tx.FirstProject("org_3"); !errors.Is(err, ErrNotFound) {
			t.Errorf("of an organization without any: %v", err)
		}
		return errors.Join(err1, err2)
	})
	damageRecord(t, db, "projects", "proj_1") // as it was
}
