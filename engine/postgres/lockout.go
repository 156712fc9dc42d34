package postgres

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/engine/publish"
)

// lockout lets the appliance into a server whose places others hold without being
// logged in. A login takes a place as soon as it has sent its user's name, and keeps it
// for as long as it is silent then. While the lockout lasts, logins that are half done for
// longer than a login may take are ended, and the addresses they came from are refused
// as soon as they come back. Sessions go on, and other addresses may log in.
type lockout struct {
	dir     string
	p       *process
	rules   string            // in force without the lockout
	refused map[string]bool   // networks, as pg_hba.conf writes them
	seen    map[int]time.Time // when a login was first seen to be half done
	over    func()
}

// lockoutAfter is how long the appliance must have been refused for a lockout.
const lockoutAfter = time.Second

// asideFile are the rules, while a lockout has others in their place. They come
// back by a name, which takes no room on a full disk.
const asideFile = hbaFile + ".aside"

// lockOut begins a lockout of the server p of the data directory dir; over, if not
// nil, is called at its end. The caller holds busy until then.
func lockOut(dir string, p *process, over func()) (*lockout, error) {
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
	return &lockout{dir: dir, p: p, rules: string(text), refused: map[string]bool{}, seen: map[int]time.Time{}, over: over}, nil
}

// repel ends the logins that have been half done for longer than a login may
// take, and refuses the addresses they came from.
func (s *lockout) repel() error {
	known := len(s.refused)
	for _, pid := range processesOf(s.dir) {
		if pid == s.p.pid || !isHalfDone(pid) {
			delete(s.seen, pid)
			continue
		}
		if first, known := s.seen[pid]; !known {
			s.seen[pid] = time.Now()
		} else if time.Since(first) > loginGrace {
			if network, ok := networkOf(clientOf(pid)); ok {
				s.refused[network] = true
			}
			_ = syscall.Kill(pid, syscall.SIGTERM) // it is gone when that fails
		}
	}
	if len(s.refused) == known {
		return nil
	}
	return s.refuse()
}

// refuse puts rules into force that refuse the addresses of half-done logins.
func (s *lockout) refuse() error {
	var rules strings.Builder
	rules.WriteString("# Written by holdfast, for a moment.\n")
	for _, network := range slices.Sorted(maps.Keys(s.refused)) {
		rules.WriteString("host all all " + network + " reject\n")
	}
	rules.WriteString(s.rules)
	if _, err := publish.FileIfChanged(filepath.Join(s.dir, hbaFile), []byte(rules.String()), 0o600); err != nil {
		return fmt.Errorf("refuse half-done logins: %w", err)
	}
	return s.p.signal(syscall.SIGHUP)
}

// networkOf returns the network that a client's address stands for in
// pg_hba.conf: the address, or the /64 of an IPv6 address. It reports false for
// what is not an address.
func networkOf(client string) (string, bool) {
	address, err := netip.ParseAddr(client)
	if err != nil {
		return "", false
	}
	bits := 32
	if address = address.WithZone("").Unmap(); address.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(address, bits).Masked().String(), true
}

// lift brings the rules back. Whoever waits for a reload has written his rules
// before, so that any reload brings them.
func (s *lockout) lift() error {
	err := s.restore()
	if s.over != nil {
		s.over()
	}
	return err
}

func (s *lockout) restore() error {
	return errors.Join(os.Rename(filepath.Join(s.dir, asideFile), filepath.Join(s.dir, hbaFile)), s.p.signal(syscall.SIGHUP))
}

// lockout is for whoever holds busy, see [lockOut].
func (p *process) lockout(dir string) locker {
	return func() (*lockout, error) { return lockOut(dir, p, nil) }
}

// lockout is what whenThereIsRoom begins one with; nil while somebody else changes
// the instance, who will begin his own if need be.
func (i *instance) lockout() (*lockout, error) {
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
	s, err := lockOut(i.specification().Dir, p, i.release)
	if err != nil {
		i.release()
		return nil, err
	}
	i.log.Warn("half-done logins hold all places of the server: ending them, and refusing their addresses, until the appliance is in")
	return s, nil
}
