package meta

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// The names of the indexes.
const (
	ByOrganization = "organization" // newest first within an organization
	ByName         = "name"         // unique, see each table
	ByHash         = "hash"         // unique, keys by the hash of their text
	ByDatabase     = "database"     // newest first within a database
	ByVerification = "verification" // newest first within a database and a verification status
	InTrash        = "trash"        // databases in the trash
	ByDeletion     = "deletion"     // trashed buckets and objects in the order of DeletionKey
	ByUser         = "user"         // newest first within a person's records
	ByBucket       = "bucket"       // newest first within a bucket
	ByKey          = "key"          // trashed objects by bucket, key and version
	ByUpload       = "upload"       // the parts of a multipart upload, highest number first
	ByWebhook      = "webhook"      // newest first within a webhook
	ByDue          = "due"          // pending deliveries by organization, webhook and the time of the next attempt
	ByUserCode     = "user_code"    // unique, device authorizations by the hash of the user code
	ByAnyName      = "any_name"     // newest first among the buckets of one name in all organizations
)

// Key joins the parts of an index key.
func Key(parts ...string) []byte { return []byte(strings.Join(parts, string(rune(separator)))) }

// Organizations are indexed ByName.
func (tx *Tx) Organizations() Table[model.Organization] {
	return table(tx, "organizations", func(o *model.Organization) string { return o.ID },
		unique(ByName, func(o *model.Organization) []byte { return Key(o.Name) }))
}

// Projects are indexed ByOrganization, and ByName within their organization.
func (tx *Tx) Projects() Table[model.Project] {
	return table(tx, "projects", func(p *model.Project) string { return p.ID },
		by(ByOrganization, func(p *model.Project) []byte { return Key(p.Organization) }),
		unique(ByName, func(p *model.Project) []byte { return Key(p.Organization, p.Name) }))
}

// Users are indexed ByOrganization, and ByName by their e-mail address.
func (tx *Tx) Users() Table[model.User] {
	return table(tx, "users", func(u *model.User) string { return u.ID },
		by(ByOrganization, func(u *model.User) []byte { return Key(u.Organization) }),
		unique(ByName, func(u *model.User) []byte { return Key(u.Email) }))
}

// Keys are indexed ByOrganization and ByHash.
func (tx *Tx) Keys() Table[model.Key] {
	t := table(tx, "keys", func(k *model.Key) string { return k.ID },
		by(ByOrganization, func(k *model.Key) []byte { return Key(k.Organization) }),
		unique(ByHash, func(k *model.Key) []byte { return k.Hash }))
	t.events = keyEvents
	return t
}

// SetupLinks are stored under the raw bytes of their token's hash.
func (tx *Tx) SetupLinks() Table[model.SetupLink] {
	return table(tx, "setup_links", func(l *model.SetupLink) string { return string(l.TokenHash) })
}

// Sessions are stored under their token's hash and indexed ByUser.
func (tx *Tx) Sessions() Table[model.Session] {
	return table(tx, "sessions", func(s *model.Session) string { return s.TokenHash },
		by(ByUser, func(s *model.Session) []byte { return Key(s.User) }))
}

// Devices are indexed ByHash of their device code, and ByUserCode.
func (tx *Tx) Devices() Table[model.DeviceAuthorization] {
	return table(tx, "devices", func(d *model.DeviceAuthorization) string { return d.ID },
		unique(ByHash, func(d *model.DeviceAuthorization) []byte { return d.DeviceHash }),
		unique(ByUserCode, func(d *model.DeviceAuthorization) []byte { return d.UserHash }))
}

// Databases are indexed ByOrganization, and ByName within their project. Those in
// the trash are only indexed InTrash, by organization.
func (tx *Tx) Databases() Table[model.Database] {
	kept := func(d *model.Database) bool { return d.Trash == nil }
	trashed := func(d *model.Database) bool { return d.Trash != nil }
	organization := func(d *model.Database) []byte { return Key(d.Organization) }
	t := table(tx, "databases", func(d *model.Database) string { return d.ID },
		by(ByOrganization, keyIf(kept, organization)),
		unique(ByName, keyIf(kept, func(d *model.Database) []byte { return Key(d.Project, d.Name) })),
		by(InTrash, keyIf(trashed, organization)))
	t.tally = func(d *model.Database) (string, model.Totals) {
		if trashed(d) {
			return d.Organization, model.Totals{}
		}
		return d.Organization, model.Totals{Databases: 1}
	}
	t.events = databaseEvents
	return t
}

// Operations on databases are indexed ByOrganization and ByDatabase.
func (tx *Tx) Operations() Table[model.DatabaseOperation] {
	t := table(tx, "operations", func(o *model.DatabaseOperation) string { return o.ID },
		by(ByOrganization, func(o *model.DatabaseOperation) []byte { return Key(o.Organization) }),
		by(ByDatabase, func(o *model.DatabaseOperation) []byte { return Key(o.Database) }))
	t.events = operationEvents
	return t
}

// Backups are indexed ByDatabase. ByVerification indexes only completed backups
// whose deletion is not pending.
func (tx *Tx) Backups() Table[model.Backup] {
	t := table(tx, "backups", func(b *model.Backup) string { return b.ID },
		by(ByDatabase, func(b *model.Backup) []byte { return Key(b.Database) }),
		by(ByVerification, keyIf(
			func(b *model.Backup) bool { return b.Status == model.BackupCompleted && !b.DeletionPending },
			func(b *model.Backup) []byte { return Key(b.Database, string(b.Verification.Status)) })))
	t.events = backupEvents
	return t
}

// Exports are indexed ByDatabase.
func (tx *Tx) Exports() Table[model.Export] {
	return table(tx, "exports", func(x *model.Export) string { return x.ID },
		by(ByDatabase, func(x *model.Export) []byte { return Key(x.Database) }))
}

// Imports are indexed ByOrganization and ByDatabase.
func (tx *Tx) Imports() Table[model.Import] {
	return table(tx, "imports", func(i *model.Import) string { return i.ID },
		by(ByOrganization, func(i *model.Import) []byte { return Key(i.Organization) }),
		by(ByDatabase, func(i *model.Import) []byte { return Key(i.Database) }))
}

// Buckets are indexed ByOrganization, ByName within their project, and ByAnyName.
func (tx *Tx) Buckets() Table[model.Bucket] {
	t := table(tx, "buckets", func(b *model.Bucket) string { return b.ID },
		by(ByOrganization, func(b *model.Bucket) []byte { return Key(b.Organization) }),
		unique(ByName, func(b *model.Bucket) []byte { return Key(b.Project, b.Name) }),
		by(ByAnyName, func(b *model.Bucket) []byte { return Key(b.Name) }))
	t.tally = func(b *model.Bucket) (string, model.Totals) {
		return b.Organization, model.Totals{Buckets: 1, Objects: b.ObjectCount, StorageBytes: b.SizeBytes}
	}
	return t
}

// BucketNamed returns the bucket of an organization with that name, or ErrNotFound. Names are unique in an
// organization, across its projects.
func (tx *Tx) BucketNamed(organization, name string) (model.Bucket, error) {
	for _, project := range tx.ProjectIDs(organization) {
		b, err := tx.Buckets().Find(ByName, Key(project, name))
		if !errors.Is(err, ErrNotFound) {
			return b, err
		}
	}
	return model.Bucket{}, ErrNotFound
}

// FirstProject returns the id of an organization's oldest project.
func (tx *Tx) FirstProject(organization string) (string, error) {
	oldest := tx.Projects().OldestIDs(ByOrganization, Key(organization), 1)
	if len(oldest) == 0 {
		return "", ErrNotFound
	}
	return oldest[0], nil
}

// ProjectIDs returns the ids of an organization's projects, oldest first, without reading the projects.
func (tx *Tx) ProjectIDs(organization string) []string {
	return tx.Projects().OldestIDs(ByOrganization, Key(organization), math.MaxInt)
}

// TrashedBuckets are indexed ByOrganization and ByDeletion. Their objects stay in
// place; only compaction sees them.
func (tx *Tx) TrashedBuckets() Table[model.TrashedBucket] {
	return table(tx, trashedTable, func(b *model.TrashedBucket) string { return b.ID },
		by(ByOrganization, func(b *model.TrashedBucket) []byte { return Key(b.Organization) }),
		by(ByDeletion, func(b *model.TrashedBucket) []byte { return DeletionKey(b.DeletedAt) }))
}

// TrashedObjects are stored under the object's version and indexed ByOrganization,
// ByDeletion and ByKey. A delete marker among them only tells the history of its key.
func (tx *Tx) TrashedObjects() Table[model.TrashedObject] {
	return table(tx, "objects.trash", func(o *model.TrashedObject) string { return o.Version },
		by(ByOrganization, func(o *model.TrashedObject) []byte { return Key(o.Organization) }),
		by(ByDeletion, func(o *model.TrashedObject) []byte { return DeletionKey(o.DeletedAt) }),
		by(ByKey, func(o *model.TrashedObject) []byte { return Key(o.Bucket, o.Key) }))
}

// BucketRestores are stored under the id of their bucket.
func (tx *Tx) BucketRestores() Table[model.BucketRestore] {
	return table(tx, "bucket_restores", func(r *model.BucketRestore) string { return r.Bucket })
}

// Uploads are the resumable uploads, including complete ones for a while.
func (tx *Tx) Uploads() Table[model.Upload] {
	t := table(tx, "uploads", func(u *model.Upload) string { return u.ID })
	t.tally = func(u *model.Upload) (string, model.Totals) {
		if u.Complete {
			return u.Organization, model.Totals{}
		}
		return u.Organization, model.Totals{Uploads: 1, UploadBytes: u.Length}
	}
	return t
}

// Multiparts are indexed ByBucket.
func (tx *Tx) Multiparts() Table[model.Multipart] {
	t := table(tx, "multiparts", func(m *model.Multipart) string { return m.ID },
		by(ByBucket, func(m *model.Multipart) []byte { return Key(m.Bucket) }))
	t.tally = func(m *model.Multipart) (string, model.Totals) {
		return m.Organization, model.Totals{Uploads: 1, UploadBytes: m.ReplacedBytes}
	}
	return t
}

// MultipartParts are stored under MultipartPartID and indexed ByUpload.
func (tx *Tx) MultipartParts() Table[model.MultipartPart] {
	t := table(tx, "multipart_parts", func(p *model.MultipartPart) string { return MultipartPartID(p.Multipart, p.Number) },
		by(ByUpload, func(p *model.MultipartPart) []byte { return Key(p.Multipart) }))
	t.tally = func(p *model.MultipartPart) (string, model.Totals) {
		return p.Organization, model.Totals{UploadBytes: p.SizeBytes}
	}
	return t
}

// MultipartPartID returns the id of a part's record. Ids sort by number.
func MultipartPartID(multipart string, number int) string {
	return fmt.Sprintf("%s.%05d", multipart, number)
}

// DropMultipart removes a multipart upload with its parts' records, and returns the references to their bytes, each once.
// It returns ErrNotFound if there is no such upload.
func (tx *Tx) DropMultipart(id string) (refs []string, err error) {
	m, err := tx.Multiparts().Get(id)
	if err != nil {
		return nil, err
	}
	if m.Joint != "" {
		refs = append(refs, m.Joint)
	}
	parts, err := tx.MultipartPartsOf(id)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.Part != m.Joint {
			refs = append(refs, p.Part)
		}
		if err := tx.MultipartParts().Delete(MultipartPartID(id, p.Number)); err != nil {
			return nil, err
		}
	}
	return refs, tx.Multiparts().Delete(id)
}

// MultipartPartsOf returns the parts of a multipart upload by number.
func (tx *Tx) MultipartPartsOf(id string) ([]model.MultipartPart, error) {
	parts, err := tx.MultipartParts().all(ByUpload, Key(id))
	slices.Reverse(parts)
	return parts, err
}

// IdempotentRequests are indexed ByHash.
func (tx *Tx) IdempotentRequests() Table[model.IdempotentRequest] {
	return table(tx, "idempotent_requests", func(r *model.IdempotentRequest) string { return r.ID },
		unique(ByHash, func(r *model.IdempotentRequest) []byte { return r.Hash }))
}

// keyIf omits the records for which want is false from an index.
func keyIf[T any](want func(*T) bool, key func(*T) []byte) func(*T) []byte {
	return func(record *T) []byte {
		if !want(record) {
			return nil
		}
		return key(record)
	}
}

// bucketNames returns every top-level bucket of the file.
func bucketNames() []string {
	names := []string{
		auditBucket, auditHeadsBucket, auditAnchorsBucket, auditIndexBucket, totalsBucket,
		objectsBucket, droppedBucket, segmentsBucket, liveBlobsBucket, discardedBlobsBucket, settingsBucket, samplesBucket, reserveBucket,
	}
	tx := &Tx{}
	for _, table := range []interface{ bucketNames() []string }{
		tx.Organizations(), tx.Projects(), tx.Users(), tx.Keys(), tx.SetupLinks(), tx.Sessions(), tx.Devices(),
		tx.Databases(), tx.Operations(), tx.Backups(), tx.Exports(), tx.Imports(),
		tx.Buckets(), tx.TrashedBuckets(), tx.TrashedObjects(), tx.BucketRestores(), tx.Uploads(), tx.Multiparts(), tx.MultipartParts(), tx.IdempotentRequests(),
		tx.Events(), tx.Webhooks(), tx.Deliveries(),
	} {
		names = append(names, table.bucketNames()...)
	}
	return names
}
