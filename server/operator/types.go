package operator

import (
	"cmp"
	"time"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// Named are the arguments of commands that create something with a name.
type Named struct {
	Name string `json:"name"`
}

// Target are the arguments of commands about one item.
type Target struct {
	ID string `json:"id"`
}

// KeyDangerous are the arguments of key.allow_dangerous.
type KeyDangerous struct {
	ID             string `json:"id"`
	AllowDangerous bool   `json:"allow_dangerous"`
}

// CreatedKey is the result of key.create. The key is shown only this once.
type CreatedKey struct {
	APIKey string   `json:"api_key"`
	Key    wire.Key `json:"key"`
}

// User is a person's account.
type User struct {
	ID           string     `json:"id"`
	Email        string     `json:"email"`
	Role         model.Role `json:"role"`
	HasPassword  bool       `json:"has_password"` // false until the person uses the set-up link
	CreatedAt    time.Time  `json:"created_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
}

// SetupLink is the result of user.setup_link.
type SetupLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// TrashedDatabase is a deleted database. Until is null for a restored one.
type TrashedDatabase struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Project   string     `json:"project"`
	DeletedAt *time.Time `json:"deleted_at"`
	Until     *time.Time `json:"recoverable_until"`
}

// MetadataBackup is the result of metadata.backup.
type MetadataBackup struct {
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
}

// RestoredBucket is a bucket that came back from the trash.
type RestoredBucket struct {
	TrashedBucket
	ExpiryOff bool `json:"expiry_off"` // it does not expire objects any more: it would have lost some at once
}

// TrashedBucket is a deleted bucket. DeletedAt is null for a restored one.
type TrashedBucket struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Project     string     `json:"project"`
	ObjectCount int64      `json:"object_count"`
	SizeBytes   int64      `json:"size_bytes"`
	DeletedAt   *time.Time `json:"deleted_at"`
}

func viewTrashedBucket(b model.TrashedBucket) TrashedBucket {
	return TrashedBucket{
		ID: b.ID, Name: b.Name, Project: b.Project, ObjectCount: b.ObjectCount, SizeBytes: b.SizeBytes, DeletedAt: timeOrAbsent(b.DeletedAt),
	}
}

// TrashedObject is a deleted object. DeletedAt is null for a restored one.
type TrashedObject struct {
	ID        string     `json:"id"` // of this version of the object
	Bucket    string     `json:"bucket"`
	Key       string     `json:"key"`
	SizeBytes int64      `json:"size_bytes"`
	DeletedAt *time.Time `json:"deleted_at"`
}

func viewTrashedObject(o model.TrashedObject) TrashedObject {
	return TrashedObject{ID: o.Version, Bucket: o.Bucket, Key: o.Key, SizeBytes: o.SizeBytes, DeletedAt: timeOrAbsent(o.DeletedAt)}
}

func timeOrAbsent(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Removed is the result of trash.empty.
type Removed struct {
	Databases int `json:"databases"`
	Buckets   int `json:"buckets"`
	Objects   int `json:"objects"`
}

// viewOrganization sets the plan if the record leaves it to the default.
func viewOrganization(o model.Organization) model.Organization {
	o.Plan = cmp.Or(o.Plan, model.PlanSelfHosted)
	return o
}

func viewUser(u model.User) User {
	return User{
		ID: u.ID, Email: u.Email, Role: u.Role, HasPassword: u.PasswordHash != "",
		CreatedAt: u.CreatedAt, LastSignInAt: u.LastSignInAt,
	}
}

func viewTrash(db model.Database) TrashedDatabase {
	view := TrashedDatabase{ID: db.ID, Name: db.Name, Project: db.Project}
	if db.Trash != nil {
		view.DeletedAt, view.Until = &db.Trash.At, &db.Trash.Until
	}
	return view
}

func views[T, V any](items []T, view func(T) V) []V {
	all := make([]V, len(items))
	for i, item := range items {
		all[i] = view(item)
	}
	return all
}
