package postgres

import (
	"context"
	"fmt"
)

// StopOrphan shuts down the postmaster that serves dir, which an earlier process
// of the appliance may have left behind; when ctx ends, by force. It returns when
// no postmaster serves dir. It succeeds if none did or dir does not exist.
func StopOrphan(ctx context.Context, dir string) error {
	return endOrphan(ctx, dir, func(p *process) error { return p.stop(ctx) })
}

// KillOrphan is StopOrphan for a directory that is about to be removed: there is no shutdown to wait for.
func KillOrphan(ctx context.Context, dir string) error {
	return endOrphan(ctx, dir, (*process).kill)
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
	file, err := readPIDFile(dir)
	return err == nil && file.pid > 0 && isPostmaster(file.pid, dir)
}
