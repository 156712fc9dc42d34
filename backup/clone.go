package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/repository"
	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
	"holdfast/internal/parallel"
)

// Cloned describes a clone of a data directory.
type Cloned struct {
	// Timeline, Start and Stop are the WAL that the clone of a running server needs to be consistent. The clone of a
	// server that was shut down needs none; Stop is then the start of its last record.
	Timeline    uint32
	Start, Stop xlog.LSN
	// At is a moment of whose commits none is missing at Stop. It is zero for a server that was shut down.
	At        time.Time
	SizeBytes int64 // of the files
}

// Clone makes dir, which must be empty, or absent in an existing directory of the same file system, a clone of the data
// directory of the server of conn, while that runs. It is a backup as [Take] makes it, except that the files share their
// blocks with the server's where the file system can do that; CanClone tells. pg_wal is left empty, as by [Restore].
//
// conn is a session as for [Take], and closed after an error. When Clone returns nil, dir is complete and synced. When
// it fails, it removes what it wrote. If the process dies before, dir has no global/pg_control and must be removed.
func Clone(ctx context.Context, conn *pgx.Conn, dir, label string) (Cloned, error) {
	c := &cloning{server: &server{conn: conn}}
	cloned, err := c.running(ctx, dir, label)
	if err != nil {
		c.server.abandon()
		return Cloned{}, fmt.Errorf("clone data directory: %w", err)
	}
	return cloned, nil
}

// CloneStopped is Clone of the data directory source, whose server was shut down cleanly and stays so. The clone has its
// WAL, so a server starts on it without an archive.
func CloneStopped(ctx context.Context, source, dir string) (Cloned, error) {
	c := &cloning{}
	cloned, err := c.stopped(ctx, source, dir)
	if err != nil {
		return Cloned{}, fmt.Errorf("clone data directory: %w", err)
	}
	return cloned, nil
}

// cloning is a running Clone.
type cloning struct {
	server *server
	root   *os.Root // the source
	target *target
	names  []string // of the files
	size   atomic.Int64
}

func (c *cloning) running(ctx context.Context, dir, label string) (Cloned, error) {
	if err := checkLabel(label); err != nil {
		return Cloned{}, err
	}
	if err := c.server.begin(ctx, label); err != nil {
		return Cloned{}, err
	}
	var at time.Time
	var end stopped
	err := c.fill(ctx, c.server.dir, dir, listFiles, func() (control []byte, err error) {
		if err := c.removeUnlogged(ctx); err != nil {
			return nil, err
		}
		if control, err = readControl(c.root); err != nil {
			return nil, err
		}
		at = time.Now()
		if end, err = c.server.end(ctx); err != nil {
			return nil, err
		}
		return control, errors.Join(c.removeUnlogged(ctx), c.label(end))
	})
	return Cloned{Timeline: c.server.timeline, Start: c.server.start, Stop: end.at, At: at, SizeBytes: c.size.Load()}, err
}

func (c *cloning) stopped(ctx context.Context, source, dir string) (Cloned, error) {
	last, err := ReadShutdown(source)
	if err != nil {
		return Cloned{}, err
	}
	err = c.fill(ctx, source, dir, listStopped, func() ([]byte, error) {
		if err := c.cloneWAL(last); err != nil {
			return nil, err
		}
		return readControl(c.root)
	})
	return Cloned{Timeline: last.Timeline, Start: last.Checkpoint, Stop: last.Checkpoint, SizeBytes: c.size.Load()}, err
}

// fill clones the files of source that list returns into dir and completes dir with the pg_control that end returns.
func (c *cloning) fill(ctx context.Context, source, dir string, list func(context.Context, *os.Root) ([]repository.Entry, error), end func() (control []byte, err error)) (err error) {
	if c.root, err = os.OpenRoot(source); err != nil {
		return fmt.Errorf("open data directory: %w", err)
	}
	defer c.root.Close()
	if c.target, err = openTarget(dir); err != nil {
		return err
	}
	defer c.target.close()
	defer func() {
		if err != nil {
			err = errors.Join(err, c.target.discard())
		}
	}()
	entries, err := list(ctx, c.root)
	if err != nil {
		return err
	}
	if err := c.files(ctx, entries); err != nil {
		return err
	}
	control, err := end()
	if err != nil {
		return err
	}
	c.size.Add(int64(len(control)))
	return c.target.finish(control)
}

// files makes the directories, and clones all files except pg_control.
func (c *cloning) files(ctx context.Context, entries []repository.Entry) error {
	for i := range entries {
		switch e := &entries[i]; {
		case e.IsDir():
			if err := c.target.mkdir(e.Path); err != nil {
				return err
			}
		case e.Path != controlFile:
			c.names = append(c.names, e.Path)
		}
	}
	all := func(yield func(string) bool) {
		for _, name := range c.names {
			if !yield(name) {
				return
			}
		}
	}
	return parallel.Do(ctx, min(2*parallel.Processors(), maxWorkers), all, func(_ context.Context, names <-chan string) error {
		for name := range names {
			if err := c.file(name); err != nil {
				return fmt.Errorf("clone %s: %w", name, err)
			}
		}
		return nil
	})
}

// file clones a file, unless it was removed meanwhile.
func (c *cloning) file(name string) error {
	from, err := c.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := c.target.create(name)
	if err != nil {
		return err
	}
	err = durable.CloneOrCopy(from, to)
	if info, statErr := to.Stat(); statErr == nil {
		c.size.Add(info.Size())
	}
	return errors.Join(err, to.Close())
}

// removeUnlogged removes from the clone what PostgreSQL recreates: see copying.excludeUnlogged.
func (c *cloning) removeUnlogged(ctx context.Context) error {
	gone, err := unloggedAmong(ctx, c.root, c.names)
	for _, name := range gone {
		if err == nil {
			err = c.target.root.RemoveAll(name)
		}
	}
	return err
}

// label writes the files from which a server learns that it must recover.
func (c *cloning) label(end stopped) error {
	for _, f := range ownFiles(&repository.Manifest{Backup: repository.Backup{BackupLabel: end.label, TablespaceMap: end.tablespaceMap}}) {
		if err := c.target.write(f.name, []byte(f.content)); err != nil {
			return err
		}
	}
	return nil
}

// historyFile matches the files that say where a timeline begins.
var historyFile = regexp.MustCompile(`^[0-9A-F]{8}\.history$`)

// reads reports whether a start reads the segment with that name and size.
func (s Shutdown) reads(name string, size uint64) bool {
	timeline, n, ok := xlog.ParseSegmentName(name, size)
	if !ok || timeline != s.Timeline {
		return false
	}
	first := uint64(s.Checkpoint) / size
	return n == first || n == first+1
}

// cloneWAL clones the WAL that the start of a server reads which was shut down: its last checkpoint, which is the last
// record, may go on in a second segment.
func (c *cloning) cloneWAL(last Shutdown) error {
	entries, err := fs.ReadDir(c.root.FS(), "pg_wal")
	if err != nil {
		return fmt.Errorf("list WAL: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("list WAL: %w", err)
		}
		if !historyFile.MatchString(e.Name()) && !last.reads(e.Name(), uint64(info.Size())) {
			continue
		}
		if err := c.file(path.Join("pg_wal", e.Name())); err != nil {
			return fmt.Errorf("clone WAL: %w", err)
		}
	}
	return nil
}
