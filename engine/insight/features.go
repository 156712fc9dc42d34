package insight

import (
	"context"
	"sync"
	"time"
)

// Features says what this appliance does on this machine, with the programs that
// are installed there.
type Features struct {
	ScheduledBackups   bool // the operator has the appliance make them
	BackupVerification bool // a trial restore follows each completed backup
	Exports            bool // one follows each completed backup
	Imports            bool
}

// Features returns what the appliance does. Exports and imports need a pg_dump,
// which may be installed or removed while the appliance runs.
func (s *Service) Features(ctx context.Context) Features {
	dumps := s.dumps.known(func() bool {
		_, err := s.imports.PgDump(ctx, s.databases.Binaries.Major)
		return err == nil
	})
	return Features{
		ScheduledBackups:   s.core.Config.BackupInterval > 0,
		BackupVerification: s.core.Config.Proofs,
		Exports:            s.core.Config.Exports && dumps,
		Imports:            dumps,
	}
}

// toolAgain is for how long a search for a program counts.
const toolAgain = 10 * time.Second

// toolSearch remembers for a while whether a program was found: looking for it
// runs those that may be it.
type toolSearch struct {
	mu    sync.Mutex
	at    time.Time
	found bool
}

func (t *toolSearch) known(search func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at.IsZero() || time.Since(t.at) > toolAgain {
		t.found, t.at = search(), time.Now()
	}
	return t.found
}
