package insight

import (
	"context"
	"sync"
	"time"
)

// Features reports what this appliance can do with the programs installed on the
// machine.
type Features struct {
	ScheduledBackups   bool // the operator has enabled them
	BackupVerification bool // a trial restore follows each completed backup
	Exports            bool // one follows each completed backup
	Imports            bool
}

// Features returns what the appliance can do. Exports and imports need a pg_dump, which
// may be installed or removed while the appliance runs.
func (s *Service) Features(ctx context.Context) Features {
	dumps := s.dumps.known(func() bool {
		_, err := s.imports.PgDump(ctx, s.databases.Binaries.Major)
		return err == nil
	})
	return Features{
		ScheduledBackups:   s.core.Config.BackupInterval > 0,
		BackupVerification: s.core.Config.VerifyBackups,
		Exports:            s.core.Config.Exports && dumps,
		Imports:            dumps,
	}
}

// toolRecheck is how long the result of a search for a program is valid.
const toolRecheck = 10 * time.Second

// toolSearch caches whether a program was found: the search runs the candidates.
type toolSearch struct {
	mu    sync.Mutex
	at    time.Time
	found bool
}

func (t *toolSearch) known(search func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() || time.Since(t.at) > toolRecheck {
		t.found, t.at = search(), time.Now()
	}
	return t.found
}
