package postgres

import (
	"context"
	"fmt"
	"os"

	"holdfast/engine/postgres/binaries"
)

// StopOrphan shuts down the postmaster that serves dir, which an earlier process
// of the appliance may have left behind; when ctx ends, by force. It returns when
// no postmaster serves dir. It succeeds if none did or dir does not exist.
func StopOrphan(ctx context.Context, dir string) error {
	return endOrphan(ctx, dir, func(p *process) error { return p.stop(ctx) })
}

// Find returns the binaries of a major version of PostgreSQL.
type Find func(ctx context.Context, major int) (binaries.Set, error)

// KillOrphan is StopOrphan for a directory that is about to be removed: there is no shutdown to wait for, and what a killed
// postmaster left in shared memory goes as well.
func KillOrphan(ctx context.Context, find Find, dir string) error {
	_, crashed := os.Lstat(pidFilePath(dir)) // nil also while it runs
	if err := endOrphan(ctx, dir, (*process).kill); err != nil || crashed != nil {
		return err
	}
	clearSharedMemory(ctx, find, dir)
	return nil
}

// clearSharedMemory removes the shared memory of a postmaster that was killed in dir, where nothing runs any more: a System V
// segment, of which Linux has 4,096, and up to 1 MB in /dev/shm. PostgreSQL finds them by the inode of dir and removes them at
// its next start there; --check, which initdb uses, ends after that. A failure leaves them until the machine restarts, and
// is no reason to keep dir.
func clearSharedMemory(ctx context.Context, find Find, dir string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateGrace)
	defer cancel()
	major, err := DirectoryMajor(dir)
	if err != nil {
		return // no server has run there
	}
	if bin, err := find(ctx, major); err == nil {
		_ = bin.Command(ctx, "postgres", "--check", "-D", dir, "-c", "shared_buffers=128kB").Run()
	}
}

func endOrphan(ctx context.Context, dir string, end func(*process) error) error {
	p, err := adopt(dir)
	if err != nil {
		return fmt.Errorf("look for a postmaster: %w", err)
	}
	if p == nil {
		return clearRemains(ctx, dir)
	}
	if err := end(p); err != nil && !p.gone() {
		return err
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), immediateGrace)
	defer cancel()
	return clearRemains(after, dir) // if it took force
}

// IsServed reports whether a postmaster serves dir.
func IsServed(dir string) bool {
	_, served := servedBy(dir)
	return served
}

// servedBy returns the postmaster.pid of the postmaster that serves dir, false if none does.
func servedBy(dir string) (pidFile, bool) {
	file, err := readPIDFile(dir)
	return file, err == nil && file.pid > 0 && isPostmaster(file.pid, dir)
}
