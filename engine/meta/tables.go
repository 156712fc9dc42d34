package meta

import (
	"strings"

	"holdfast/engine/model"
)

// The names of the indexes.
const (
	ByOrganization = "organization" // newest first within an organization
	ByName         = "name"         // unique, see each table
	ByHash         = "hash"         // unique, keys by the hash of their text
	ByDatabase     = "database"     // newest first within a database
	ByVerification = "verification" // newest first within a database and a state of verification
	InTrash        = "trash"        // databases that lie in the trash
	ByDeletion     = "deletion"     // trashed buckets and objects in the order of DeletionKey
	ByUser         = "user"         // newest first of a person
	ByUserCode     = "user_code"    // unique, device authorizations by the hash of the user code
)

// Key joins the parts of an index key.
func Key(parts ...string) []byte { return []byte(strings.Join(parts, string(rune(separator)))) }

// Organizations are found ByName.
func (tx *Tx) Organizations() Table[model.Organization] {
	return Table[model.Organization]{tx.bolt, organizations()}
}

// Projects are found ByOrganization, and ByName within their organization.
func (tx *Tx) Projects() Table[model.Project] { return Table[model.Project]{tx.bolt, projects()} }

// Users are found ByOrganization, and ByName by their e-mail address.
func (tx *Tx) Users() Table[model.User] { return Table[model.User]{tx.bolt, users()} }

// Keys are found ByOrganization and ByHash.
func (tx *Tx) Keys() Table[model.Key] { return Table[model.Key]{tx.bolt, keys()} }

// SetupLinks are kept by their token's hash, as the bytes it is.
func (tx *Tx) SetupLinks() Table[model.SetupLink] {
	return Table[model.SetupLink]{tx.bolt, setupLinks()}
}

// Sessions are kept by their token's hash and found ByUser.
func (tx *Tx) Sessions() Table[model.Session] { return Table[model.Session]{tx.bolt, sessions()} }

// Devices are found ByHash of their device code, and ByUserCode.
func (tx *Tx) Devices() Table[model.DeviceAuthorization] {
	return Table[model.DeviceAuthorization]{tx.bolt, devices()}
}

// Databases are found ByOrganization, and ByName within their project, unless
// they lie in the trash: then they are found InTrash by their organization.
func (tx *Tx) Databases() Table[model.Database] { return Table[model.Database]{tx.bolt, databases()} }

// Operations on databases are found ByDatabase.
func (tx *Tx) Operations() Table[model.DatabaseOperation] {
	return Table[model.DatabaseOperation]{tx.bolt, operations()}
}

// Backups are indexed ByDatabase. ByVerification indexes only completed backups
// whose deletion is not pending.
func (tx *Tx) Backups() Table[model.Backup] { return Table[model.Backup]{tx.bolt, backups()} }

// Exports are found ByDatabase.
func (tx *Tx) Exports() Table[model.Export] { return Table[model.Export]{tx.bolt, exports()} }

// Imports are found ByOrganization and ByDatabase.
func (tx *Tx) Imports() Table[model.Import] { return Table[model.Import]{tx.bolt, imports()} }

// Buckets are found ByOrganization, and ByName within their project.
func (tx *Tx) Buckets() Table[model.Bucket] { return Table[model.Bucket]{tx.bolt, buckets()} }

// Uploads are the resumable ones, for a while also those that are complete.
func (tx *Tx) Uploads() Table[model.Upload] { return Table[model.Upload]{tx.bolt, uploads()} }

func uploads() schema[model.Upload] {
	return schema[model.Upload]{
		name: "uploads",
		id:   func(u *model.Upload) string { return u.ID },
		tally: func(u *model.Upload) (string, model.Totals) {
			if u.Complete {
				return u.Organization, model.Totals{}
			}
			return u.Organization, model.Totals{Uploads: 1, UploadBytes: u.Length}
		},
	}
}

// IdempotentRequests are found ByHash.
func (tx *Tx) IdempotentRequests() Table[model.IdempotentRequest] {
	return Table[model.IdempotentRequest]{tx.bolt, idempotentRequests()}
}

func organizations() schema[model.Organization] {
	return schema[model.Organization]{
		name: "organizations",
		id:   func(o *model.Organization) string { return o.ID },
		indexes: []index[model.Organization]{
			{ByName, true, func(o *model.Organization) []byte { return Key(o.Name) }},
		},
	}
}

func projects() schema[model.Project] {
	return schema[model.Project]{
		name: "projects",
		id:   func(p *model.Project) string { return p.ID },
		indexes: []index[model.Project]{
			{ByOrganization, false, func(p *model.Project) []byte { return Key(p.Organization) }},
			{ByName, true, func(p *model.Project) []byte { return Key(p.Organization, p.Name) }},
		},
	}
}

func users() schema[model.User] {
	return schema[model.User]{
		name: "users",
		id:   func(u *model.User) string { return u.ID },
		indexes: []index[model.User]{
			{ByOrganization, false, func(u *model.User) []byte { return Key(u.Organization) }},
			{ByName, true, func(u *model.User) []byte { return Key(u.Email) }},
		},
	}
}

func keys() schema[model.Key] {
	return schema[model.Key]{
		name: "keys",
		id:   func(k *model.Key) string { return k.ID },
		indexes: []index[model.Key]{
			{ByOrganization, false, func(k *model.Key) []byte { return Key(k.Organization) }},
			{ByHash, true, func(k *model.Key) []byte { return k.Hash }},
		},
	}
}

func setupLinks() schema[model.SetupLink] {
	return schema[model.SetupLink]{
		name: "setup_links",
		id:   func(l *model.SetupLink) string { return string(l.TokenHash) },
	}
}

func sessions() schema[model.Session] {
	return schema[model.Session]{
		name: "sessions",
		id:   func(s *model.Session) string { return s.TokenHash },
		indexes: []index[model.Session]{
			{ByUser, false, func(s *model.Session) []byte { return Key(s.User) }},
		},
	}
}

func devices() schema[model.DeviceAuthorization] {
	return schema[model.DeviceAuthorization]{
		name: "devices",
		id:   func(d *model.DeviceAuthorization) string { return d.ID },
		indexes: []index[model.DeviceAuthorization]{
			{ByHash, true, func(d *model.DeviceAuthorization) []byte { return d.DeviceHash }},
			{ByUserCode, true, func(d *model.DeviceAuthorization) []byte { return d.UserHash }},
		},
	}
}

func databases() schema[model.Database] {
	kept := func(d *model.Database) bool { return d.Trash == nil }
	return schema[model.Database]{
		name: "databases",
		id:   func(d *model.Database) string { return d.ID },
		indexes: []index[model.Database]{
			{ByOrganization, false, keyIf(kept, func(d *model.Database) []byte { return Key(d.Organization) })},
			{ByName, true, keyIf(kept, func(d *model.Database) []byte { return Key(d.Project, d.Name) })},
			{InTrash, false, keyIf(
				func(d *model.Database) bool { return !kept(d) },
				func(d *model.Database) []byte { return Key(d.Organization) },
			)},
		},
		tally: func(d *model.Database) (string, model.Totals) {
			if !kept(d) {
				return d.Organization, model.Totals{}
			}
			return d.Organization, model.Totals{Databases: 1}
		},
	}
}

func operations() schema[model.DatabaseOperation] {
	return schema[model.DatabaseOperation]{
		name: "operations",
		id:   func(o *model.DatabaseOperation) string { return o.ID },
		indexes: []index[model.DatabaseOperation]{
			{ByDatabase, false, func(o *model.DatabaseOperation) []byte { return Key(o.Database) }},
		},
	}
}

func backups() schema[model.Backup] {
	return schema[model.Backup]{
		name: "backups",
		id:   func(b *model.Backup) string { return b.ID },
		indexes: []index[model.Backup]{
			{ByDatabase, false, func(b *model.Backup) []byte { return Key(b.Database) }},
			{ByVerification, false, keyIf(
				func(b *model.Backup) bool { return b.Status == model.BackupCompleted && !b.DeletionPending },
				func(b *model.Backup) []byte { return Key(b.Database, string(b.Verification.Status)) },
			)},
		},
	}
}

func exports() schema[model.Export] {
	return schema[model.Export]{
		name: "exports",
		id:   func(x *model.Export) string { return x.ID },
		indexes: []index[model.Export]{
			{ByDatabase, false, func(x *model.Export) []byte { return Key(x.Database) }},
		},
	}
}

func imports() schema[model.Import] {
	return schema[model.Import]{
		name: "imports",
		id:   func(i *model.Import) string { return i.ID },
		indexes: []index[model.Import]{
			{ByOrganization, false, func(i *model.Import) []byte { return Key(i.Organization) }},
			{ByDatabase, false, func(i *model.Import) []byte { return Key(i.Database) }},
		},
	}
}

func buckets() schema[model.Bucket] {
	return schema[model.Bucket]{
		name: "buckets",
		id:   func(b *model.Bucket) string { return b.ID },
		indexes: []index[model.Bucket]{
			{ByOrganization, false, func(b *model.Bucket) []byte { return Key(b.Organization) }},
			{ByName, true, func(b *model.Bucket) []byte { return Key(b.Project, b.Name) }},
		},
		tally: func(b *model.Bucket) (string, model.Totals) {
			return b.Organization, model.Totals{Buckets: 1, Objects: b.ObjectCount, StorageBytes: b.SizeBytes}
		},
	}
}

func idempotentRequests() schema[model.IdempotentRequest] {
	return schema[model.IdempotentRequest]{
		name: "idempotent_requests",
		id:   func(r *model.IdempotentRequest) string { return r.ID },
		indexes: []index[model.IdempotentRequest]{
			{ByHash, true, func(r *model.IdempotentRequest) []byte { return r.Hash }},
		},
	}
}

// keyIf leaves records out of an index that want does not want.
func keyIf[T any](want func(*T) bool, key func(*T) []byte) func(*T) []byte {
	return func(record *T) []byte {
		if !want(record) {
			return nil
		}
		return key(record)
	}
}

// bucketNames returns every bucket of the file.
func bucketNames() []string {
	names := []string{
		auditBucket, auditHeadsBucket, auditAnchorsBucket, auditIndexBucket, totalsBucket,
		objectsBucket, droppedBucket, segmentsBucket, liveBlobsBucket, discardedBlobsBucket, settingsBucket, samplesBucket,
	}
	names = append(names, organizations().buckets()...)
	names = append(names, projects().buckets()...)
	names = append(names, users().buckets()...)
	names = append(names, keys().buckets()...)
	names = append(names, setupLinks().buckets()...)
	names = append(names, sessions().buckets()...)
	names = append(names, devices().buckets()...)
	names = append(names, databases().buckets()...)
	names = append(names, operations().buckets()...)
	names = append(names, backups().buckets()...)
	names = append(names, exports().buckets()...)
	names = append(names, imports().buckets()...)
	names = append(names, buckets().buckets()...)
	names = append(names, trashedBuckets().buckets()...)
	names = append(names, trashedObjects().buckets()...)
	names = append(names, uploads().buckets()...)
	names = append(names, idempotentRequests().buckets()...)
	return names
}

func (s schema[T]) buckets() []string {
	names := []string{s.name}
	for _, ix := range s.indexes {
		names = append(names, s.name+"."+ix.name)
	}
	return names
}
