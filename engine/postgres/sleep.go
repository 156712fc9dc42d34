package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"holdfast/internal/pgcontrol"
)

// An instance can sleep: its postmaster is stopped, and Wake starts it again. A proxy
// holds the port of its clients, and wakes it for them.

// Proxied describes the proxy of an instance.
type Proxied struct {
	// Reserved reports whether a port must be left free. nil means none.
	Reserved func(port int) bool
	// Block refuses the address of a client that holds a connection slot. The client is
	// known by the port from which the proxy connected.
	Block func(port int)
}

// ProxiedHost is the address on which a server listens whose clients use a proxy.
const ProxiedHost = "127.0.0.1"

// port returns a free port for the server. It is not held: another program may take it
// before the server does.
func (p *Proxied) port() (int, error) {
	const attempts = 100
	for range attempts {
		l, err := net.Listen("tcp", net.JoinHostPort(ProxiedHost, "0"))
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		address, _ := l.Addr().(*net.TCPAddr)
		l.Close()
		if p.Reserved == nil || !p.Reserved(address.Port) {
			return address.Port, nil
		}
	}
	return 0, errors.New("find a free port: all are reserved for databases")
}

// choosePort gives an instance that has no port one, that of the running server if
// there is one. The caller holds busy.
func (i *instance) choosePort() error {
	spec := i.specification()
	if spec.Config.Port != 0 || spec.Proxied == nil {
		return nil
	}
	port := 0
	if running, err := readPIDFile(spec.Dir); err == nil && (spec.Proxied.Reserved == nil || !spec.Proxied.Reserved(running.port)) {
		port = running.port
	}
	var err error
	if port == 0 {
		port, err = spec.Proxied.port()
	}
	i.mu.Lock()
	i.spec.Config.Port = port
	i.mu.Unlock()
	return err
}

// Register adds an instance that sleeps.
func (s *Supervisor) Register(spec Spec) error {
	i, err := s.claim(spec)
	if err != nil {
		return fmt.Errorf("register %s: %w", spec.ID, err)
	}
	i.enter(StateAsleep, "")
	return nil
}

// Sleep stops a running instance until Wake, unless idle, which is called when no
// further client can reach the server without Wake, reports false. stopped is called
// once the server has shut down; nobody wakes it before that returns. Sleep reports
// whether the instance sleeps.
func (s *Supervisor) Sleep(ctx context.Context, id string, idle func() bool, stopped func() error) (asleep bool, err error) {
	err = s.act(id, "put to sleep", func(i *instance) (err error) {
		asleep, err = i.sleep(ctx, idle, stopped)
		return err
	})
	return asleep, err
}

// Wake starts an instance that sleeps, and returns once it accepts connections. It
// returns at once if the instance runs. If the start fails, the supervisor goes on
// trying, as if the instance had died.
func (s *Supervisor) Wake(ctx context.Context, id string) error {
	return s.act(id, "wake", func(i *instance) error { return i.wake(ctx) })
}

// ClientAddress returns the address at which a proxied instance listens, false if it
// does not run.
func (s *Supervisor) ClientAddress(id string) (string, bool) {
	i, err := s.instance(id)
	if err != nil {
		return "", false
	}
	if state, _, _ := i.status(); state != StateRunning {
		return "", false
	}
	return net.JoinHostPort(ProxiedHost, strconv.Itoa(i.specification().Config.Port)), true
}

func (i *instance) sleep(ctx context.Context, idle func() bool, stopped func() error) (bool, error) {
	if err := i.acquire(ctx); err != nil {
		return false, err
	}
	defer i.release()
	// The state first: whoever sees the instance running after this counts for idle.
	if !i.change(StateRunning, StateAsleep) {
		return false, nil
	}
	if !idle() {
		i.change(StateAsleep, StateRunning)
		return false, nil
	}
	err := errors.Join(i.halt(ctx), i.clearSocket())
	i.mu.Lock()
	i.state, i.reason = StateAsleep, ""
	if i.spec.Proxied != nil {
		i.spec.Config.Port = 0 // it may become another server's
	}
	i.mu.Unlock()
	i.report(StateAsleep, "")
	if err == nil {
		err = stopped()
	}
	return true, err
}

// change replaces a state without reporting it. It reports false if the instance has
// another.
func (i *instance) change(from, to State) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != from {
		return false
	}
	i.state = to
	return true
}

func (i *instance) wake(ctx context.Context) error {
	if state, _, _ := i.status(); state == StateRunning {
		return nil
	}
	if err := i.acquire(ctx); err != nil {
		return err
	}
	defer i.release()
	switch state, reason, _ := i.status(); state {
	case StateRunning:
		return nil
	case StateAsleep:
		err := i.bringUp(ctx)
		if err != nil && i.life.Err() == nil {
			i.enter(StateDown, err.Error())
			i.follow(nil)
		}
		return err
	default:
		return fmt.Errorf("the server is %s: %s", state, reason)
	}
}

// ShutdownPosition returns the position of the last checkpoint in a data directory in
// which no server runs, "" if one may run or did not shut down.
func ShutdownPosition(dir string) (string, error) {
	if _, err := os.Lstat(pidFilePath(dir)); !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	control, err := os.ReadFile(filepath.Join(dir, pgcontrol.File))
	if err != nil {
		return "", fmt.Errorf("read pg_control: %w", err)
	}
	if pgcontrol.Content(control) == nil {
		return "", errors.New("pg_control is damaged")
	}
	if !pgcontrol.ShutDown(control) {
		return "", nil
	}
	timeline, lsn := pgcontrol.Checkpoint(control)
	return fmt.Sprintf("%d/%X/%X", timeline, lsn>>32, uint32(lsn)), nil
}
