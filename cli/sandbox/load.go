package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// archiveMagic starts a file in pg_dump's custom format, which psql cannot
// read.
var archiveMagic = []byte("PGDMP")

// CheckScript checks that psql can read the file, before a sandbox is created.
func CheckScript(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("import: %s is a directory; name a file of SQL", path)
	}
	head := make([]byte, len(archiveMagic))
	if _, err := io.ReadFull(file, head); err == nil && bytes.Equal(head, archiveMagic) {
		return fmt.Errorf("import: %s is an archive of pg_dump and not SQL; leave --import out and begin the command with "+
			"`pg_restore --no-owner --no-acl -d \"$PGDATABASE\" %s`", path, path)
	}
	return nil
}

// Load has psql execute the file up to the first error. psql's messages go to
// standard error.
func (l *Lease) Load(ctx context.Context, path string, environment []string) error {
	psql, err := exec.LookPath("psql")
	foreign := err != nil
	if foreign {
		psql, environment = l.Psql, append(environment, l.PsqlEnv...)
	}
	if psql == "" {
		return errors.New("import: a file is loaded by psql, and there is none; install PostgreSQL's client programs (Debian: postgresql-client)")
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	held, stop := l.whileHeld(ctx)
	defer stop()
	cmd := exec.CommandContext(held, psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--output", os.DevNull, "--file", path)
	cmd.Env, cmd.Stderr = environment, os.Stderr
	if foreign && os.Geteuid() == 0 {
		script, err := l.asOwner(cmd, path)
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		defer script.Close()
	}
	err = cmd.Run()
	if why := l.Why(); why != nil && err != nil {
		return fmt.Errorf("import: %s was not loaded: %w", path, why)
	}
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("import: %s was not loaded (psql: %w)", path, err))
	}
	return nil
}

// asOwner makes psql run as the owner of the appliance's socket, with that user's rights and only the variables that it
// needs, and read the file, which the caller closes, from its standard input. The process behind the socket has named the
// program, and root executes nothing for another user.
func (l *Lease) asOwner(psql *exec.Cmd, path string) (script *os.File, err error) {
	info, err := os.Stat(l.Socket)
	if err != nil {
		return nil, err
	}
	if script, err = os.Open(path); err != nil {
		return nil, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	psql.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	psql.Args[len(psql.Args)-1], psql.Stdin, psql.Dir = "-", script, "/"
	psql.Env = slices.DeleteFunc(slices.Concat(psql.Env, l.PsqlEnv), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(l.PsqlEnv, variable) && !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "PATH"
	})
	return script, nil
}
