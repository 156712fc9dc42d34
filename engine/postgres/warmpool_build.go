package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/durable"
)

// PreparedFormat is the version of what a template contains. A change of
// fillTemplate or Init must raise it.
const PreparedFormat = "9"

// The pool's directory contains the template, template-<format>-<version>, and
// prepared directories, prepared-<format>-<version>-<random>. Pools remove
// directories of other formats and versions.
const (
	preparedPrefix = "prepared-"
	templatePrefix = "template-"
	buildingSuffix = ".building"
)

func (s *WarmPool) prefix() string {
	return preparedPrefix + PreparedFormat + "-" + s.opts.Bin.Version + "-"
}

func (s *WarmPool) template() string {
	return filepath.Join(s.opts.Dir, templatePrefix+PreparedFormat+"-"+s.opts.Bin.Version)
}

// buildOne makes a prepared directory and returns its path.
func (s *WarmPool) buildOne(ctx context.Context, nice int) (string, error) {
	if err := s.ensureTemplate(ctx); err != nil {
		return "", err
	}
	path, err := s.copyOne(ctx, nice)
	if err == nil || ctx.Err() != nil {
		return path, err
	}
	// The template may have been the reason, or have been replaced meanwhile.
	if err := s.checkTemplate(ctx, err); err != nil {
		return "", err
	}
	if err := s.ensureTemplate(ctx); err != nil {
		return "", err
	}
	return s.copyOne(ctx, nice)
}

// copyOne makes a prepared directory from the template.
func (s *WarmPool) copyOne(ctx context.Context, nice int) (string, error) {
	t, err := s.readOnce()
	if err != nil {
		return "", fmt.Errorf("read the template of data directories: %w", err)
	}
	path := filepath.Join(s.opts.Dir, s.prefix()+strings.ToLower(rand.Text()))
	err = publish(path, func(dir string) error {
		return atNice(nice, func() error { return t.copyTo(ctx, dir) })
	})
	if err != nil {
		return "", fmt.Errorf("build data directory: %w", err)
	}
	return path, nil
}

// readOnce returns the template, as it was when it was first read.
func (s *WarmPool) readOnce() (*template, error) {
	if t := s.known.Load(); t != nil {
		return t, nil
	}
	t, err := readTemplate(s.template())
	if err == nil {
		s.known.Store(t)
	}
	return t, err
}

// ensureTemplate builds the template unless there is one. Only one call builds, and
// the others wait, creations among them: it is not niced.
func (s *WarmPool) ensureTemplate(ctx context.Context) error {
	err := s.templates(ctx, func() error {
		if _, err := os.Lstat(s.template()); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return publish(s.template(), func(dir string) error { return s.prepare(ctx, dir) })
	})
	if err != nil {
		return fmt.Errorf("build template of data directories: %w", err)
	}
	return nil
}

// checkTemplate removes a damaged template, for cause, which made a copy fail. A
// copy that is under way fails with it, and is made again. If the template is not
// damaged, or cannot be read for want of file descriptors or memory, it stays, and only a copy that another call's removal disturbed is worth another try.
func (s *WarmPool) checkTemplate(ctx context.Context, cause error) error {
	return s.templates(ctx, func() error {
		s.known.Store(nil)
		files, err := readManifest(s.template())
		if err == nil {
			var present manifest
			if present, err = sumTree(s.template()); err == nil {
				err = files.compare(present)
			}
		}
		if err == nil {
			if errors.Is(cause, errTemplateDamaged) || errors.Is(cause, os.ErrNotExist) {
				return nil
			}
			return cause
		}
		if isShortage(err) {
			return errors.Join(cause, err)
		}
		s.opts.Log.Error("the template of data directories is damaged: building another", "error", err)
		return discard(s.template())
	})
}

// isShortage reports whether a file could not be read for lack of something that has
// nothing to do with the file.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// templates runs act while no other call builds or removes the template.
func (s *WarmPool) templates(ctx context.Context, act func() error) error {
	select {
	case s.templating <- struct{}{}:
		defer func() { <-s.templating }()
		return act()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish builds a directory under another name, and renames it to path when it is
// complete and durable.
func publish(path string, build func(dir string) error) error {
	dir := path + buildingSuffix
	err := build(dir)
	if err == nil {
		err = durable.MoveDir(dir, path)
	}
	if err != nil {
		return errors.Join(err, discard(dir))
	}
	return nil
}

// prepare makes dir a template: it runs Init, fills the template and stops the
// server cleanly.
func (s *WarmPool) prepare(ctx context.Context, dir string) error {
	if err := Init(ctx, s.opts.Bin, dir); err != nil {
		return err
	}
	spec, err := s.privateSpec(dir)
	if err != nil {
		return err
	}
	if err := s.makeTemplate(ctx, spec); err != nil {
		// A killed server leaves its socket behind, which no other start removes.
		return errors.Join(err, spec.Config.ClearSocket())
	}
	return tidy(dir)
}

func (s *WarmPool) makeTemplate(ctx context.Context, spec Spec) error {
	p, err := launch(ctx, spec, s.opts.Log)
	if err != nil {
		return err
	}
	if err := fillTemplate(ctx, spec); err != nil {
		return errors.Join(err, p.kill())
	}
	return p.stop(ctx)
}

// privateSpec returns the specification of an instance without TCP. Its port only
// names the socket: several builds share one socket directory.
func (s *WarmPool) privateSpec(dir string) (Spec, error) {
	sockets := s.opts.SocketDir
	var err error
	if sockets == "" {
		sockets, err = SocketDir(s.opts.Dir)
	} else {
		err = privateDir(sockets)
	}
	if err != nil {
		return Spec{}, err
	}
	port, err := PrivatePort(sockets)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		ID: filepath.Base(dir), Bin: s.opts.Bin, Dir: dir,
		Config: Config{Port: port, SocketDir: sockets, Settings: map[string]string{
			"logging_collector": "off", "autovacuum": "off",
		}},
	}, nil
}

// tidy removes what the instance does not need, lists the rest and makes it durable.
func tidy(dir string) error {
	err := os.RemoveAll(filepath.Join(dir, logDir))
	if err == nil {
		err = removeForks(dir)
	}
	if err == nil { // else autovacuum would be busy in every new database with what the template's making changed
		err = os.RemoveAll(filepath.Join(dir, statisticsFile))
	}
	if err == nil {
		err = writeManifest(dir)
	}
	if err != nil {
		return fmt.Errorf("tidy data directory: %w", err)
	}
	return durable.SyncTree(dir)
}

// statisticsFile has the cumulative statistics of a server that was shut down.
const statisticsFile = "pg_stat/pgstat.stat"

// removeForks removes the maps of free space and of visible pages from the directory of a server that was shut down. They
// are a quarter of its files. PostgreSQL works without them and makes those that it needs again: a page without a bit
// in them counts as full, and as not visible to all.
func removeForks(dir string) error {
	for _, pattern := range []string{"global/*_fsm", "global/*_vm", "base/*/*_fsm", "base/*/*_vm"} {
		forks, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, fork := range forks {
			if err := os.Remove(fork); err != nil {
				return err
			}
		}
	}
	return nil
}

// discard removes an unfinished or outdated directory. It first ends the
// postmaster that an appliance killed during the build may have left in it.
func discard(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := endRemains(dir); err != nil {
		return err
	}
	return removeTree(dir)
}

// removeTree removes dir. It retries, because an initdb that has just lost its
// server may still be cleaning up there.
func removeTree(dir string) error {
	var err error
	for range 20 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}

// endRemains ends a postmaster, or an initdb's server, that still runs in dir.
func endRemains(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := endInitdb(ctx, dir); err != nil {
		return fmt.Errorf("end initdb: %w", err)
	}
	p, err := adopt(dir)
	if err != nil {
		return err
	}
	if p != nil {
		if err := p.kill(); err != nil {
			return err
		}
	}
	return endOrphans(ctx, dir)
}
