package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// tune writes changed settings and makes the postmaster read them, once PostgreSQL has
// checked the file. An instance that is down reads them when it is back.
func (i *instance) tune(ctx context.Context, change func(*Config)) error {
	if err := i.acquire(ctx); err != nil {
		return err
	}
	defer i.release()
	old := i.specification()
	spec := old
	change(&spec.Config)
	if _, err := WriteConfig(spec.Bin, spec.Dir, spec.Config); err != nil {
		return err
	}
	err := i.checkSettings(ctx, spec)
	if err == nil {
		err = i.reloaded(ctx, spec)
	}
	if err != nil {
		// The settings in force and those in the file must not differ.
		_, undo := WriteConfig(old.Bin, old.Dir, old.Config)
		return errors.Join(err, undo)
	}
	i.mu.Lock()
	i.spec.Config = spec.Config
	i.mu.Unlock()
	return nil
}

// checkSettings asks PostgreSQL about the file that it is about to read.
func (i *instance) checkSettings(ctx context.Context, spec Spec) error {
	p := i.process()
	if p == nil {
		return nil
	}
	conn, err := connect(ctx, spec, p.lockout(spec.Dir), "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var wrong string
	err = conn.QueryRow(ctx, `select coalesce(string_agg(f.name || ': ' || f.error, '; '), '') from pg_file_settings f
		join pg_settings s on lower(s.name) = lower(f.name) where f.error is not null and s.context <> 'postmaster'`).Scan(&wrong)
	switch {
	case err != nil:
		return fmt.Errorf("check the settings: %w", err)
	case wrong != "":
		return fmt.Errorf("%w: %s", ErrRefusedSettings, wrong)
	}
	return nil
}

// LiveSetting is a setting as a running server has it.
type LiveSetting struct {
	Name, Value, Default string // Default is PostgreSQL's own, a number in the setting's unit
	Description          string
	// NeedsRestart means that only a start of the server changes it.
	NeedsRestart bool
	// Ours means that the appliance's session has a value of its own, so that Value
	// says nothing about others.
	Ours bool
}

// LiveSettings returns those of the named settings that the server knows. conn is the
// superuser's, just opened, in the database postgres.
func LiveSettings(ctx context.Context, conn *pgx.Conn, names []string) (map[string]LiveSetting, error) {
	rows, _ := conn.Query(ctx, `select lower(name), current_setting(name), coalesce(boot_val, ''),
		short_desc, context = 'postmaster', source in ('client', 'user', 'database', 'database user', 'session')
		from pg_settings where lower(name) = any ($1)`, names)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[LiveSetting])
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	live := map[string]LiveSetting{}
	for _, s := range all {
		live[s.Name] = s
	}
	return live, nil
}
