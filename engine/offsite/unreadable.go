package offsite

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// unreadable is what the disk does not give back to be copied: of a database, by its id, backups or WAL, by "" objects, and by
// model.OffsiteSecrets secrets.
// The copy keeps what it has of it. It is safe for concurrent use.
type unreadable struct {
	mu  sync.Mutex
	why map[string]string
}

// note notes why something cannot be copied, nil if it can. It logs what is new.
func (u *unreadable) note(log *slog.Logger, database string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, was := u.why[database]
	switch {
	case err == nil && was:
		delete(u.why, database)
		log.Info("what could not be read is copied off-site again", "database", cmp.Or(database, "objects"))
	case err != nil && before != err.Error():
		if u.why == nil {
			u.why = map[string]string{}
		}
		u.why[database] = err.Error()
		log.Error("files cannot be read here and are not copied off-site; the copy keeps what it has of them", "database", cmp.Or(database, "objects"), "error", err)
	}
}

// forget forgets a database that is gone.
func (u *unreadable) forget(database string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.why, database)
}

// all returns what was noted.
func (u *unreadable) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.why))
}
