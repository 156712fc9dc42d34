package postgres

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// logrotate is the signal on which a postmaster checks for the file that `pg_ctl
// logrotate` creates.
const logrotate = syscall.SIGUSR1

// update writes new rules and waits until they are in force.
func (i *instance) update(ctx context.Context, hba HBA) error {
	if err := i.acquire(ctx); err != nil {
		return err
	}
	defer i.release()
	spec := i.specification()
	old := spec.HBA
	if _, err := WriteHBA(spec.Dir, hba); err != nil {
		return err
	}
	if err := i.reloaded(ctx, spec); err != nil {
		// The rules in force and those in the files must not differ.
		_, undo := WriteHBA(spec.Dir, old)
		return errors.Join(err, undo)
	}
	i.mu.Lock()
	i.spec.HBA = hba
	i.mu.Unlock()
	return nil
}

func (i *instance) reload(ctx context.Context) error {
	if err := i.acquire(ctx); err != nil {
		return err
	}
	defer i.release()
	return i.reloaded(ctx, i.specification())
}

// reloaded makes the postmaster read its files again. The caller holds busy, so
// that the process does not change. A postmaster that is down reads them when it
// is back.
func (i *instance) reloaded(ctx context.Context, spec Spec) error {
	p := i.process()
	if p == nil {
		return nil
	}
	err := reloadProcess(ctx, spec, p)
	if err == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(50 * time.Millisecond): // its exit may be noticed a moment later
		return err
	}
}

// reloadProcess makes p read its files again and waits until it has.
func reloadProcess(ctx context.Context, spec Spec, p *process) error {
	before, _, err := loaded(ctx, spec, p)
	if err != nil {
		return err
	}
	if err := p.signal(syscall.SIGHUP); err != nil {
		return err
	}
	for {
		at, wrong, err := loaded(ctx, spec, p)
		switch {
		case err != nil:
			return err
		case wrong != "":
			return fmt.Errorf("PostgreSQL refuses the rules: %s", wrong)
		case !at.started.Equal(before.started) || !at.read.Equal(before.read):
			return nil
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("wait for the reload: %w", err)
		}
	}
}

// assign writes the configuration of spec, makes the postmaster read it, and returns
// the first session that was forked after that.
func (i *instance) assign(ctx context.Context, spec Spec, before Loaded) (*pgx.Conn, error) {
	if err := i.acquire(ctx); err != nil {
		return nil, err
	}
	defer i.release()
	p := i.process()
	if p == nil {
		return nil, errors.New("the server is not running")
	}
	if _, err := configure(spec); err != nil {
		return nil, err
	}
	i.mu.Lock()
	i.spec = spec
	i.mu.Unlock()
	if err := p.signal(syscall.SIGHUP); err != nil {
		return nil, err
	}
	for {
		conn, at, err := openLoaded(ctx, spec, p)
		if err != nil {
			return nil, err
		}
		if at.started.Equal(before.started) && !at.read.Equal(before.read) {
			return conn, nil
		}
		conn.Close(ctx)
		if !at.started.Equal(before.started) {
			return nil, errors.New("the server was restarted since it was checked")
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait for the reload: %w", err)
		}
	}
}

// openLoaded opens a session and returns what [loadedIn] says of it. Rules that
// PostgreSQL refuses are an error.
func openLoaded(ctx context.Context, spec Spec, p *process) (*pgx.Conn, Loaded, error) {
	conn, err := connect(ctx, spec, p.lockout(spec.Dir), "postgres")
	if err != nil {
		return nil, Loaded{}, err
	}
	at, wrong, err := loadedIn(ctx, conn)
	if err == nil && wrong != "" {
		err = fmt.Errorf("PostgreSQL refuses the rules: %s", wrong)
	}
	if err != nil {
		conn.Close(ctx)
		return nil, Loaded{}, err
	}
	return conn, at, nil
}

// loaded asks a new session about the configuration it started with: when the
// postmaster last read it, and what it found wrong with the rules in the files. A
// session inherits both the time and the rules from the postmaster, which reads
// the rules right after the settings (postmaster.c, process_pm_reload_request).
func loaded(ctx context.Context, spec Spec, p *process) (at Loaded, wrong string, err error) {
	conn, err := connect(ctx, spec, p.lockout(spec.Dir), "postgres")
	if err != nil {
		return Loaded{}, "", err
	}
	defer conn.Close(ctx)
	return loadedIn(ctx, conn)
}

// loadedIn is loaded for a session that was just opened.
func loadedIn(ctx context.Context, conn *pgx.Conn) (at Loaded, wrong string, err error) {
	err = conn.QueryRow(ctx, `select pg_postmaster_start_time(), pg_conf_load_time(),
		coalesce((select string_agg('line ' || line_number || ': ' || error, '; ')
			from pg_hba_file_rules where error is not null), '')`).Scan(&at.started, &at.read, &wrong)
	if err != nil {
		return Loaded{}, "", fmt.Errorf("ask for the configuration in force: %w", err)
	}
	return at, wrong, nil
}
