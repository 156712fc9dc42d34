package postgres

import (
	"context"
	"fmt"
	"path/filepath"

	"holdfast/engine/postgres/binaries"
)

// Superuser is the name of the appliance's own role in every instance.
const Superuser = "holdfast"

// Init makes dir a data directory: checksums, UTF-8, the locale C.UTF-8, the
// single role [Superuser], no passwords. dir must be absent or empty; its parent
// must exist. When Init returns nil, the directory is durable. The error contains
// initdb's output.
func Init(ctx context.Context, bin binaries.Set, dir string) error {
	args := []string{
		"--pgdata=" + dir,
		"--username=" + Superuser,
		"--auth=reject", // until WriteHBA has written the real rules
		"--encoding=UTF8",
		"--data-checksums",
		"--no-instructions",
	}
	err := runNice(initCommand(ctx, bin, dir, append(args, localeArgs(bin.Major)...)), 0)
	if ctx.Err() != nil {
		return fmt.Errorf("initdb: %w", ctx.Err()) // omits the output of a killed initdb
	}
	if err != nil {
		return fmt.Errorf("initdb %s: %w", dir, err)
	}
	return nil
}

// localeArgs returns options for a locale that sorts by code point and exists on
// every machine: from PostgreSQL 17 on its builtin C.UTF-8, before that the C
// library's.
func localeArgs(major int) []string {
	if major >= 17 {
		return []string{"--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"}
	}
	return []string{"--locale=C.UTF-8"}
}

func initCommand(ctx context.Context, bin binaries.Set, dir string, args []string) *toolCommand {
	cmd := bin.Command(ctx, "initdb", args...)
	cmd.Dir = filepath.Dir(dir)
	return newToolCommand(cmd)
}
