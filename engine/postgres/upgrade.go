package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/internal/durable"
)

// Upgrade describes the upgrade of a data directory to a newer major version. It
// works on a copy of the directory, so the original can still be used whatever
// happens.
type Upgrade struct {
	From Spec // the copy, whose server was shut down; Run uses it up
	To   Spec // its directory does not exist yet; on the file system of the copy
	// Database is the likely name of the tenant's database, as [Provision] takes it.
	Database string
	Log      *slog.Logger
	// Step, when set, is called before each of the steps that [Run] goes through; an
	// error ends it.
	Step func(UpgradeStep) error
}

// UpgradeStep is a part of an upgrade, for display.
type UpgradeStep string

// The steps, in order.
const (
	StepPreparing UpgradeStep = "preparing" // the copy is made ready
	StepUpgrading UpgradeStep = "upgrading" // pg_upgrade
	StepAnalyzing UpgradeStep = "analyzing" // privileges, settings, statistics
)

// Upgraded is the result of an upgrade.
type Upgraded struct {
	// Updates are the extensions of which the machine has a newer version than the
	// database.
	Updates []Extension
	// Analyzed reports that the planner's statistics are complete.
	Analyzed bool
	// Notes say, for people, what is not as it was before.
	Notes []string
}

// Run makes u.To.Dir a data directory of the newer version with everything that
// u.From.Dir has. When Run returns nil, the new server has shut down and its
// directory is durable. After an error, or if the process dies, the caller calls
// [EndUpgrade] for both directories and removes them.
//
// pg_upgrade links the files of the copy into the new directory, so the data takes
// its space once. It loses what is kept outside of dumps: that the appliance's
// schemas are members of plpgsql, and the privileges on PostgreSQL's functions,
// which Run sets again.
func (u Upgrade) Run(ctx context.Context) (done Upgraded, err error) {
	if err := RefuseUpgrade(u.From.Bin, u.To.Bin); err != nil {
		return done, err
	}
	u.From, u.To = quiet(u.From), quiet(u.To)
	if err := u.step(StepPreparing); err != nil {
		return done, err
	}
	old, err := u.prepareCopy(ctx)
	if err != nil {
		return done, fmt.Errorf("prepare the copy: %w", err)
	}
	if err := u.step(StepUpgrading); err != nil {
		return done, err
	}
	if err := u.link(ctx, old); err != nil {
		return done, err
	}
	if err := u.step(StepAnalyzing); err != nil {
		return done, err
	}
	if done, err = u.complete(ctx, old); err != nil {
		return done, fmt.Errorf("complete the new data: %w", err)
	}
	return done, durable.SyncTree(u.To.Dir)
}

func (u Upgrade) step(s UpgradeStep) error {
	if u.Step == nil {
		return nil
	}
	return u.Step(s)
}

// RefuseUpgrade says what to install if a program that pg_upgrade needs is missing.
func RefuseUpgrade(from, to binaries.Set) error {
	for _, side := range []struct {
		bin    binaries.Set
		target bool
	}{{to, true}, {from, false}} {
		if missing := side.bin.MissingForUpgrade(side.target); len(missing) > 0 {
			return RefusePrograms(strings.Join(missing, ", "), side.bin.Major)
		}
	}
	return nil
}

// RefusePrograms refuses an upgrade because this machine lacks programs of a major version.
func RefusePrograms(what string, major int) error {
	return model.Errorf(model.CodeConflict,
		"the upgrade needs the %s of PostgreSQL %d, which this machine lacks: the operator must install the package postgresql-%d (of Debian and of apt.postgresql.org)", what, major, major)
}

// quiet returns the spec for a server that only the upgrade uses: without clients
// and background workers, which would run jobs of the tenant's.
func quiet(spec Spec) Spec {
	spec.HBA, spec.Proxied, spec.Config.Listen = HBA{}, nil, nil
	spec.Config.Settings = maps.Clone(spec.Config.Settings)
	if spec.Config.Settings == nil {
		spec.Config.Settings = map[string]string{}
	}
	maps.Copy(spec.Config.Settings, map[string]string{
		"max_worker_processes": "0", "max_parallel_workers": "0", "max_parallel_workers_per_gather": "0",
		"autovacuum": "off",
		"fsync":      "off", // Run syncs everything at its end
	})
	return spec
}

// within runs act while a private server runs on the directory of spec.
func (u Upgrade) within(ctx context.Context, spec Spec, act func() error) error {
	p, err := launch(ctx, spec, u.Log)
	if err != nil {
		return err
	}
	if err := act(); err != nil {
		return errors.Join(err, p.kill())
	}
	return p.stop(ctx)
}

// link makes the new directory and runs pg_upgrade, in the environment of
// [binaries.Set.Env]. Both servers use the private socket of their specs.
func (u Upgrade) link(ctx context.Context, old oldCluster) error {
	if err := Init(ctx, u.To.Bin, u.To.Dir); err != nil {
		return err
	}
	if _, err := configure(u.To); err != nil {
		return err
	}
	cmd := newToolCommand(u.To.Bin.Command(ctx, "pg_upgrade", newDataDirectory+u.To.Dir, "--old-datadir="+u.From.Dir,
		"--old-bindir="+u.From.Bin.Dir, "--new-bindir="+u.To.Bin.Dir, "--username="+Superuser, "--link", "--no-sync",
		"--socketdir="+u.From.Config.SocketDir, "--old-port="+strconv.Itoa(u.From.Config.Port), "--new-port="+strconv.Itoa(u.To.Config.Port)))
	cmd.Dir = u.From.Dir // it writes scripts there that nobody needs
	cmd.Env = append(u.To.Bin.Env(), "PGPASSFILE=/nonexistent", "PGSERVICEFILE=/nonexistent", "PGSYSCONFDIR=/nonexistent")
	if err := runNice(cmd, 0); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("pg_upgrade: %w", ctx.Err())
		}
		return u.explain(err, old)
	}
	return os.RemoveAll(filepath.Join(u.To.Dir, outputDir))
}

// newDataDirectory is the option by which endPgUpgrade recognizes the pg_upgrade of
// a directory.
const newDataDirectory = "--new-datadir="

// outputDir is where pg_upgrade writes its logs, in the new data directory.
const outputDir = "pg_upgrade_output.d"

// EndUpgrade ends what an upgrade of a killed appliance left running on its
// directories: pg_upgrade, initdb and servers. It succeeds if nothing runs.
func EndUpgrade(ctx context.Context, find Find, dirs ...string) error {
	for _, dir := range dirs {
		if err := errors.Join(endInitdb(ctx, dir), endPgUpgrade(ctx, dir)); err != nil {
			return fmt.Errorf("end an upgrade: %w", err)
		}
	}
	for _, dir := range dirs {
		if err := KillOrphan(ctx, find, dir); err != nil {
			return err
		}
	}
	return nil
}

// DirectoryMajor returns the major version of PostgreSQL whose data directory dir is.
func DirectoryMajor(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("read the version of a data directory: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the version of a data directory: %w", err)
	}
	return major, nil
}
