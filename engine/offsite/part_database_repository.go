package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"holdfast/backup/repository"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/parallel"
)

const (
	// maxAttempts is how often files are listed again because some of them have disappeared.
	maxAttempts = 10
	// busyPause is before an attempt after a collection was found to be running.
	busyPause = 200 * time.Millisecond
	// filesAtOnce is how many files of a database are stored at a time.
	filesAtOnce = 2
)

// copyRepository stores the files of the repository that the store lacks, tells the log what is new and what
// is not needed any more, and returns the repository's state.
func (c *databaseCopy) copyRepository(ctx context.Context, r *repository.Repository) ([]stream.Entry, error) {
	for attempt := 0; ; attempt++ {
		found, err := c.storeRepository(ctx, r, attempt >= maxAttempts)
		switch {
		case err == nil:
			c.publish(found)
			c.ownFiles = true
			return c.repositoryEntries(), nil
		case errors.Is(err, repository.ErrBusy) && attempt >= maxAttempts:
			return c.repositoryEntries(), nil // as it was before; the end of the collection calls again
		case errors.Is(err, repository.ErrBusy):
			if !wait(ctx, busyPause) {
				return nil, ctx.Err()
			}
		case !errors.Is(err, fs.ErrNotExist) || attempt > maxAttempts:
			return nil, err
		}
	}
}

// repositoryEntries returns the state of the repository as the log has it.
func (c *databaseCopy) repositoryEntries() (entries []stream.Entry) {
	for name, ref := range c.known.Names(c.id, KindRepository) {
		entries = append(entries, stream.Entry{Owner: c.id, Kind: KindRepository, Name: name, Ref: ref})
	}
	return entries
}

// storeRepository stores the files that the store lacks and returns all. A file that has
// disappeared is left out or, unless all others are wanted in spite of it, an fs.ErrNotExist.
func (c *databaseCopy) storeRepository(ctx context.Context, r *repository.Repository, inSpite bool) (map[string]stream.Reference, error) {
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	found := map[string]stream.Reference{}
	if err := c.storePacks(ctx, files.Packs, found, inSpite); err != nil {
		return nil, err
	}
	for _, f := range files.Indexes {
		if err := c.storeOpen(ctx, repository.IndexName(f), f, found); err != nil {
			return nil, err
		}
	}
	for _, name := range files.Manifests {
		f, err := os.Open(c.repositoryPath(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			c.keep(name, err, found)
			continue
		}
		if err := errors.Join(c.storeOpen(ctx, name, f, found), f.Close()); err != nil {
			return nil, fmt.Errorf("copy a manifest: %w", err)
		}
	}
	c.keepUnreadable(files.Unreadable, found)
	return found, c.keepLost(ctx, r, found)
}

func (c *databaseCopy) repositoryPath(name string) string {
	return filepath.Join(c.recovery.BackupDirectory(c.id), "repository", filepath.FromSlash(name))
}

// keepUnreadable adds what the store has of damaged indexes: it may be what repairs them.
func (c *databaseCopy) keepUnreadable(numbers []uint32, found map[string]stream.Reference) {
	for name, ref := range c.known.Names(c.id, KindRepository) {
		if n, ok := repository.NumberOf(name); ok && slices.Contains(numbers, n) {
			found[name] = ref
		}
	}
}

// storePacks stores packs, several at a time. The log has each one at once, so that
// a first backup that takes hours continues after a restart.
func (c *databaseCopy) storePacks(ctx context.Context, packs []repository.PackFile, found map[string]stream.Reference, inSpite bool) error {
	var lacking []repository.PackFile
	for _, p := range packs {
		ref, ok := c.known.Get(c.id, KindRepository, p.Name)
		if stored := c.files[p.Name]; stored.digest == p.Digest {
			found[p.Name] = stored.ref
		} else if ok && ref.Hash == stream.Hash(p.Digest) && ref.Size == p.Size {
			found[p.Name] = ref
		} else {
			lacking = append(lacking, p)
		}
	}
	var mu sync.Mutex
	return parallel.Do(ctx, filesAtOnce, slices.Values(lacking), func(ctx context.Context, packs <-chan repository.PackFile) error {
		for p := range packs {
			ref, err := c.storeFile(ctx, c.repositoryPath(p.Name))
			mu.Lock()
			if errors.Is(err, fs.ErrNotExist) && inSpite || errors.Is(err, errUnreadable) {
				c.keep(p.Name, err, found)
				mu.Unlock()
				continue
			}
			if err != nil {
				mu.Unlock()
				return err
			}
			found[p.Name], c.files[p.Name] = ref, storedFile{p.Digest, ref}
			if _, replaced := c.known.Get(c.id, KindRepository, p.Name); !replaced {
				c.put(p.Name, ref)
			}
			mu.Unlock()
		}
		return nil
	})
}

// put notes a new file that nothing refers to yet.
func (c *databaseCopy) put(name string, ref stream.Reference) {
	c.known.Put(c.id, KindRepository, name, ref)
	c.frames.add(stream.File{Owner: c.id, Kind: KindRepository, Name: name, Ref: ref})
}

// keep passes over a file that cannot be read. What the store has below its name stays in the copy.
func (c *databaseCopy) keep(name string, err error, found map[string]stream.Reference) {
	c.skip(name, err)
	if ref, ok := c.known.Get(c.id, KindRepository, name); ok {
		found[name] = ref
	}
}

// storeOpen stores an index or a manifest, unless the store has it.
func (c *databaseCopy) storeOpen(ctx context.Context, name string, f *os.File, found map[string]stream.Reference) error {
	digest, err := repository.Digest(f)
	if err != nil {
		c.keep(name, err, found)
		return nil
	}
	stored := c.files[name]
	if stored.digest != digest {
		stored.digest = digest
		ref, ok := c.known.Get(c.id, KindRepository, name)
		if ok && sameContent(f, ref) {
			stored.ref = ref
		} else if stored.ref, err = c.store(ctx, f); errors.Is(err, errUnreadable) {
			c.keep(name, err, found)
			return nil
		} else if err != nil {
			return err
		}
		c.files[name] = stored
	}
	found[name] = stored.ref
	return nil
}

// sameContent reports whether a file has the content of a reference.
func sameContent(f *os.File, ref stream.Reference) bool {
	h := blake3.New()
	n, err := io.Copy(h, io.NewSectionReader(f, 0, ref.Size+1))
	return err == nil && n == ref.Size && stream.Hash(h.Sum(nil)) == ref.Hash
}

// errUnreadable means that the disk does not give a file back.
var errUnreadable = errors.New("the file cannot be read")

// storeFile stores a file.
func (c *databaseCopy) storeFile(ctx context.Context, path string) (stream.Reference, error) {
	f, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err != nil {
		return stream.Reference{}, fmt.Errorf("copy a file: %w", err)
	}
	defer f.Close()
	return c.store(ctx, f)
}

// store stores an open file. The writer repeats what the store makes fail, so another error is the file's.
func (c *databaseCopy) store(ctx context.Context, f *os.File) (stream.Reference, error) {
	info, err := f.Stat()
	if err != nil {
		return stream.Reference{}, fmt.Errorf("copy a file: %w", err)
	}
	ref, err := c.writer.Store(ctx, io.NewSectionReader(f, 0, info.Size()))
	if err != nil && ctx.Err() == nil && c.writer.Err() == nil {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return ref, err
}

// publish tells the log how the repository has changed. Everything is stored together, and in an
// order in which every beginning of it is a repository: what is not needed is dropped first where something
// new may have its name.
func (c *databaseCopy) publish(found map[string]stream.Reference) {
	before := c.known.Names(c.id, KindRepository)
	var drops, gone, files []string
	for name := range before {
		if _, still := found[name]; still {
			continue
		}
		if _, numbered := repository.NumberOf(name); numbered {
			gone = append(gone, name)
		} else {
			drops = append(drops, name) // manifests need the others
		}
	}
	for name, ref := range found {
		if old, ok := before[name]; !ok || old != ref {
			files = append(files, name)
		}
	}
	slices.SortFunc(gone, func(a, b string) int { return repository.Compare(b, a) })
	slices.SortFunc(files, repository.Compare)
	c.publishOrdered(drops, gone, files, found)
}

// publishOrdered drops manifests, adds packs and indexes, drops indexes and packs, and adds manifests.
func (c *databaseCopy) publishOrdered(drops, gone, files []string, found map[string]stream.Reference) {
	manifests := slices.IndexFunc(files, func(name string) bool { _, numbered := repository.NumberOf(name); return !numbered })
	if manifests < 0 {
		manifests = len(files)
	}
	var bodies []stream.Body
	drop := func(name string) {
		bodies = append(bodies, stream.FileDrop{Owner: c.id, Kind: KindRepository, Name: name})
		c.known.Drop(c.id, KindRepository, name)
		delete(c.files, name)
	}
	add := func(name string) {
		bodies = append(bodies, stream.File{Owner: c.id, Kind: KindRepository, Name: name, Ref: found[name]})
		c.known.Put(c.id, KindRepository, name, found[name])
	}
	for _, step := range []struct {
		do    func(string)
		names []string
	}{{drop, drops}, {add, files[:manifests]}, {drop, gone}, {add, files[manifests:]}} {
		for _, name := range step.names {
			step.do(name)
		}
	}
	c.frames.add(bodies...)
}
