package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/engine/publish"
)

// siege lets the appliance into a server whose places others hold without being
// logged in. A login takes a place as soon as it has said who it would be, and keeps it
// for as long as it is silent then. While the siege lasts, the rules let nobody in over
// TCP, so that whoever knocks is refused at once, and logins that are half done are ended.
// Sessions go on.
type siege struct {
	dir  string
	p    *process
	seen map[int]time.Time // when a login was first seen to be half done
	over func()
}

// besiegedAfter is how long the appliance must have been refused for a siege.
const besiegedAfter = time.Second

// asideFile are the rules, while a siege has others in their place. They come
// back by a name, which takes no room on a full disk.
const asideFile = hbaFile + ".aside"

// besiege begins a siege of the server p of the data directory dir; over, if not
// nil, is called at its end. The caller holds busy until then.
func besiege(dir string, p *process, over func()) (*siege, error) {
	rules := filepath.Join(dir, hbaFile)
	aside := filepath.Join(dir, asideFile)
	text, err := os.ReadFile(rules)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.Link(rules, aside); err != nil {
		return nil, fmt.Errorf("put the rules aside: %w", err)
	}
	var local strings.Builder
	local.WriteString("# Written by holdfast, for a moment.\n")
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "local ") {
			local.WriteString(line)
		}
	}
	local.WriteString("host all all all reject\n")
	s := &siege{dir: dir, p: p, seen: map[int]time.Time{}, over: over}
	if _, err = publish.FileIfChanged(rules, []byte(local.String()), 0o600); err == nil {
		err = p.signal(syscall.SIGHUP)
	}
	if err != nil {
		return nil, errors.Join(err, s.restore())
	}
	return s, nil
}

// press ends the logins that have been half done for longer than a login may take.
func (s *siege) press() {
	for _, pid := range processesOf(s.dir) {
		if pid == s.p.pid || !isHalfDone(pid) {
			delete(s.seen, pid)
			continue
		}
		if first, known := s.seen[pid]; !known {
			s.seen[pid] = time.Now()
		} else if time.Since(first) > loginGrace {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it is gone when that fails
		}
	}
}

// lift brings the rules back. Whoever waits for a reload has written his rules
// before, so that any reload brings them.
func (s *siege) lift() error {
	err := s.restore()
	if s.over != nil {
		s.over()
	}
	return err
}

func (s *siege) restore() error {
	return errors.Join(os.Rename(filepath.Join(s.dir, asideFile), filepath.Join(s.dir, hbaFile)), s.p.signal(syscall.SIGHUP))
}

// siege is for whoever holds busy, see [besiege].
func (p *process) siege(dir string) sieger {
	return func() (*siege, error) { return besiege(dir, p, nil) }
}

// siege is what whenThereIsRoom begins one with; nil while somebody else changes
// the instance, who will begin his own if need be.
func (i *instance) siege() (*siege, error) {
	select {
	case i.busy <- struct{}{}:
	default:
		return nil, nil
	}
	p := i.process()
	if p == nil || i.life.Err() != nil {
		i.release()
		return nil, nil
	}
	s, err := besiege(i.specification().Dir, p, i.release)
	if err != nil {
		i.release()
		return nil, err
	}
	i.log.Warn("others hold all places of the server: keeping them out until the appliance is in")
	return s, nil
}
