package postgres

import (
	"context"
	"fmt"
	"path/filepath"
)

// Superuser is the name of the appliance's own role in every instance.
const Superuser = "holdfast"

// Init makes dir a data directory: checksums, UTF-8, the locale C.UTF-8, the
// one role [Superuser], no passwords. dir must be absent or empty; its parent
// must exist. When Init returns nil the directory is durable. The error holds
// what initdb printed.
func Init(ctx context.Context, bin Binaries, dir string) error {
	return initdb(ctx, bin, dir, 0)
}

// initdb is Init at a niceness (0 = as this process runs).
func initdb(ctx context.Context, bin Binaries, dir string, nice int) error {
	args := []string{
		"--pgdata=" + dir,
		"--username=" + Superuser,
		"--auth=reject", // until WriteHBA has written the real rules
		"--encoding=UTF8",
		"--data-checksums",
		"--no-instructions",
	}
	err := runNice(bin.initCommand(ctx, dir, append(args, localeArgs(bin.Major)...)), nice)
	if ctx.Err() != nil {
		return fmt.Errorf("initdb: %w", ctx.Err()) // the output of a killed initdb is left out
	}
	if err != nil {
		return fmt.Errorf("initdb %s: %w", dir, err)
	}
	return nil
}

// localeArgs choose a locale that sorts by code point and is there on every
// machine: PostgreSQL 17 brings its own C.UTF-8, before that it is the C
// library's.
func localeArgs(major int) []string {
	if major >= 17 {
		return []string{"--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"}
	}
	return []string{"--locale=C.UTF-8"}
}

func (b Binaries) initCommand(ctx context.Context, dir string, args []string) *toolCommand {
	cmd := b.command(ctx, "initdb", args...)
	cmd.Dir = filepath.Dir(dir)
	return newToolCommand(cmd)
}
