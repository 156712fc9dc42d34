package advice

import (
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Facts is what the appliance knows of an organization without querying its databases.
type Facts struct {
	Now       time.Time
	Limits    Thresholds
	Keys      []model.Key // only usable ones
	Plan      model.Plan
	Used      func(model.Metric) int64
	Databases []Database
	Damaged   []DamagedObject
	// DamagedJournal has the time at which each damaged record was found.
	DamagedJournal []time.Time
	Verifies       bool // whether backups are verified
	Offsite        Offsite
	// DiskFree and DiskTotal describe the data directory's disk, in bytes.
	DiskFree, DiskTotal int64
	// ClockAhead is by how much the clock is implausibly ahead, 0 if it is not;
	// ClockGrace is how much longer the appliance must run before it believes it.
	ClockAhead, ClockGrace time.Duration
}

// DamagedObject is an object whose bytes differ from those that were stored.
type DamagedObject struct {
	Bucket    model.Bucket
	Key       string
	SizeBytes int64
	FoundAt   time.Time
	Away      bool // the off-site copy had the only bytes
	InTrash   bool // the object or its bucket was deleted
}

// Database is one of the organization's databases.
type Database struct {
	model.Database // with its current status
	// LastAttempt and LastCompleted are the newest backup attempt and the newest
	// completed backup, nil if there is none.
	LastAttempt, LastCompleted *model.Backup
	// Current means that the newest completed backup has everything: the database sleeps
	// and has not been changed since.
	Current bool
	// Unprotected means that a completed backup is required and missing.
	Unprotected bool
	// FailedVerifications are the backups whose test restore failed.
	FailedVerifications []model.Backup
	// CertificateEnd is zero if it could not be read.
	CertificateEnd time.Time
	// Present is the version of PostgreSQL that its server would run on after a restart, "" if that is not known.
	Present string
	// Slots are the replication slots of clients.
	Slots []postgres.Slot
	// Archiving is nil while nothing receives WAL.
	Archiving *Archiving
}

func (db Database) resource() model.Resource { return resource(db.Database) }

func resource(db model.Database) model.Resource {
	return model.Resource{Type: model.ResourceDatabase, ID: db.ID, Name: db.Name}
}

// isStable reports whether the database is neither being created nor deleted.
func (db Database) isStable() bool {
	return db.Status != model.DatabaseCreating && db.Status != model.DatabaseDeleting
}

// call returns a request about a database.
func call(method string, db model.Database, path string, body map[string]any) *model.RecommendedCall {
	return &model.RecommendedCall{Method: method, Path: "/v1/databases/" + db.ID + path, Body: body}
}

// Account runs every check that uses facts.
func Account(f Facts) []model.Recommendation {
	var found []model.Recommendation
	for _, check := range accountChecks() {
		found = append(found, check(f)...)
	}
	return found
}

func accountChecks() []func(Facts) []model.Recommendation {
	return []func(Facts) []model.Recommendation{
		eachDatabase(databaseDown), eachDatabase(noBackup), eachDatabase(oldBackup), eachDatabase(failedBackup), eachDatabase(failedVerifications), eachDatabase(unverifiedBackup),
		eachDatabase(failedArchiving), eachDatabase(replicationSlots),
		eachDatabase(openAllowlist), eachDatabase(oldMinor), eachDatabase(endingCertificate), eachDatabase(changedPassword),
		offsiteFenced, offsiteBehind, offsiteDamaged, offsiteUnrestorable, offsiteUnreadable, offsiteForeign, offsiteUnverified, objectsUnreachable, objectsOverLimit,
		clockAhead, fullDisk, fullPlan, damagedObjects, damagedJournal, unusedKeys, keysWithoutExpiry,
	}
}

func eachDatabase(check func(Facts, Database) []model.Recommendation) func(Facts) []model.Recommendation {
	return func(f Facts) (found []model.Recommendation) {
		for _, db := range f.Databases {
			if db.isStable() {
				found = append(found, check(f, db)...)
			}
		}
		return found
	}
}
