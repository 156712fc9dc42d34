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

	"holdfast/internal/durable"
)

// lockout lets the appliance connect to a server whose connection slots are held
// by incomplete logins. A login takes a slot as soon as it has sent its user's
// name, and keeps it while it sends nothing more. During a lockout, the appliance
// ends logins that are incomplete for longer than a login may take, and refuses
// new connections from their addresses. Sessions continue, and other addresses
// may log in.
type lockout struct {
	dir     string
	p       *process
	rules   string            // in force without the lockout
	refused map[string]bool   // networks, as pg_hba.conf writes them
	seen    map[int]time.Time // when a login was first seen incomplete
	over    func()
}

// lockoutAfter is how long the server must have refused the appliance before a
// lockout.
const lockoutAfter = time.Second

// savedHBAFile holds the regular rules during a lockout. A rename restores them,
// which needs no space on a full disk.
const savedHBAFile = hbaFile + ".saved"

// lockOut begins a lockout on the server p of the data directory dir. over, if
// not nil, is called at its end. The caller holds busy until then.
func lockOut(dir string, p *process, over func()) (*lockout, error) {
	rules := filepath.Join(dir, hbaFile)
	saved := filepath.Join(dir, savedHBAFile)
	text, err := os.ReadFile(rules)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	if err := os.Remove(saved); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.Link(rules, saved); err != nil {
		return nil, fmt.Errorf("keep the rules: %w", err)
	}
	return &lockout{dir: dir, p: p, rules: string(text), refused: map[string]bool{}, seen: map[int]time.Time{}, over: over}, nil
}

// lockOutIncomplete ends the logins that have been incomplete for longer than a login may
// take, and refuses the addresses they came from.
func (s *lockout) lockOutIncomplete() error {
	known := len(s.refused)
	for _, pid := range processesOf(s.dir) {
		if pid == s.p.pid || !isIncompleteLogin(pid) {
			delete(s.seen, pid)
			continue
		}
		if first, known := s.seen[pid]; !known {
			s.seen[pid] = time.Now()
		} else if time.Since(first) > loginGrace {
			s.refuseClient(pid)
			_ = syscall.Kill(pid, syscall.SIGTERM) // an error means that the process has ended
		}
	}
	if len(s.refused) == known {
		return nil
	}
	return s.refuse()
}

// refuseClient refuses the address of an incomplete login. If a proxy holds the port,
// the server sees only the proxy's address, and the proxy refuses the client's.
func (s *lockout) refuseClient(pid int) {
	if s.p.proxied != nil {
		s.p.proxied.Block(clientPortOf(pid))
		return
	}
	if network, ok := networkOf(clientOf(pid)); ok {
		s.refused[network] = true
	}
}

// refuse applies rules that reject the addresses of incomplete logins.
func (s *lockout) refuse() error {
	var rules strings.Builder
	rules.WriteString("# Written by holdfast, temporarily.\n")
	for _, network := range slices.Sorted(maps.Keys(s.refused)) {
		rules.WriteString("host all all " + network + " reject\n")
	}
	rules.WriteString(s.rules)
	if _, err := durable.WriteFileIfChanged(filepath.Join(s.dir, hbaFile), []byte(rules.String()), 0o600); err != nil {
		return fmt.Errorf("refuse incomplete logins: %w", err)
	}
	return s.p.signal(syscall.SIGHUP)
}

// networkOf returns the network that represents a client's address in
// pg_hba.conf: the address, or the /64 of an IPv6 address. It reports false if
// client is not an address.
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

// end restores the rules. A caller that waits for a reload has already written its
// rules, so any reload applies them.
func (s *lockout) end() error {
	err := s.restore()
	if s.over != nil {
		s.over()
	}
	return err
}

func (s *lockout) restore() error {
	return errors.Join(os.Rename(filepath.Join(s.dir, savedHBAFile), filepath.Join(s.dir, hbaFile)), s.p.signal(syscall.SIGHUP))
}

// lockout begins a lockout for a caller that holds busy, see [lockOut].
func (p *process) lockout(dir string) locker {
	return func() (*lockout, error) { return lockOut(dir, p, nil) }
}

// lockout begins a lockout for openWhenFree. It returns nil while another caller
// changes the instance: that caller begins its own if necessary.
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
	i.log.Warn("incomplete logins hold all connection slots of the server: ending them and refusing their addresses until the appliance is connected")
	return s, nil
}
