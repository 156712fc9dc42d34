package offsite

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/backup/repository"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/durable"
	"holdfast/internal/parallel"
)

// fetchDirectory, below Directory, has a list for each database whose files are not all here.
const fetchDirectory = "fetch"

const fetchFormat = 1

// fetchList is the files of a database's backups that a recovery has yet to fetch.
type fetchList struct {
	Format  int         `json:"format"`
	Files   []fetchFile `json:"files"`
	Damaged []string    `json:"damaged"` // what could not be read in the first phase
	Stale   bool        `json:"stale"`   // as KindStale says
}

// fetchFile is a file in the store.
type fetchFile struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Epoch uint32 `json:"epoch"`
	Nonce string `json:"nonce,omitempty"`
	ID    uint64 `json:"id"`
	Size  int64  `json:"size"`
	Hash  string `json:"hash"`
}

func fetchFileOf(key fetchKey, ref stream.Reference) fetchFile {
	return fetchFile{
		Kind: key.kind, Name: key.name,
		Epoch: ref.Epoch.Number, Nonce: ref.Epoch.Nonce, ID: ref.ID, Size: ref.Size, Hash: ref.Hash.String(),
	}
}

// reference returns the file's reference. One whose hash is not one is found damaged when it is read.
func (f fetchFile) reference() stream.Reference {
	ref := stream.Reference{Epoch: stream.Epoch{Number: f.Epoch, Nonce: f.Nonce}, ID: f.ID, Size: f.Size}
	if hash, err := hex.DecodeString(f.Hash); err == nil {
		copy(ref.Hash[:], hash)
	}
	return ref
}

// compareFetch orders files as they are fetched: WAL, then packs, indexes and manifests.
func compareFetch(a, b fetchFile) int {
	return cmp.Or(strings.Compare(b.Kind, a.Kind), repository.Compare(a.Name, b.Name))
}

func fetchListPath(dataDir, owner string) string {
	return filepath.Join(dataDir, Directory, fetchDirectory, owner+".json")
}

// isAway reports whether files of a database's backups are still in the store alone.
func isAway(dataDir, owner string) bool {
	_, err := os.Stat(fetchListPath(dataDir, owner))
	return !errors.Is(err, fs.ErrNotExist)
}

func readFetchList(dataDir, owner string) (l fetchList, err error) {
	text, err := os.ReadFile(fetchListPath(dataDir, owner))
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err == nil && l.Format != fetchFormat {
		err = fmt.Errorf("it has format %d, and this program knows format %d", l.Format, fetchFormat)
	}
	if err != nil {
		return l, fmt.Errorf("read the list of files to fetch: %w", err)
	}
	return l, nil
}

func (l fetchList) write(dataDir, owner string) error {
	path := fetchListPath(dataDir, owner)
	for _, dir := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
		if err := durable.EnsureDir(durable.OS{}, dir); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	text, err := json.Marshal(l)
	if err == nil {
		err = durable.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the list of files to fetch: %w", err)
	}
	return nil
}

func removeFetchList(dataDir, owner string) error {
	path := fetchListPath(dataDir, owner)
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = durable.SyncDir(durable.OS{}, filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("remove the list of files to fetch: %w", err)
	}
	return nil
}

const (
	// fetchesAtOnce is how many files of a database are fetched at a time.
	fetchesAtOnce = 8
	// fetchAgain is before another attempt to fetch files that were damaged or not found.
	fetchAgain = 3 * time.Second
)

// fetchDatabase fetches the files of a database's backups that are not here, and verifies them. It can be
// repeated, and continues. When it returns without an error or with one for which stream.Damaged holds, it is
// done: then everything is here that the store can give. In a store without its marker nothing is lost for good.
func fetchDatabase(ctx context.Context, r *stream.Repository, dataDir, owner string, progress func(done, total int64)) error {
	list, err := readFetchList(dataDir, owner)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f := &fetch{repository: r, backups: backupsOf(dataDir, owner), progress: progress}
	for _, file := range list.Files {
		f.total += file.Size
	}
	if err := f.run(ctx, list.Files); err != nil {
		return err
	}
	if err := f.again(ctx); err != nil {
		return err
	}
	if err := f.checkMarker(ctx); err != nil {
		return err
	}
	if err := removeFetchList(dataDir, owner); err != nil {
		return err
	}
	for _, damage := range list.Damaged {
		f.damage = append(f.damage, fmt.Errorf("%w: %s", stream.ErrCorrupt, damage))
	}
	return errors.Join(f.damage...)
}

// fetch is a running fetchDatabase.
type fetch struct {
	repository *stream.Repository
	backups    string
	progress   func(done, total int64)
	total      int64

	directories sync.Map // whose names are durable

	mu     sync.Mutex
	done   int64
	failed []fetchFile // those of damage
	last   bool        // they are not fetched again
	damage []error
}

// checkMarker returns an error if something is damaged and the store does not have its marker.
func (f *fetch) checkMarker(ctx context.Context) error {
	if len(f.damage) == 0 {
		return nil
	}
	if absent := f.repository.CheckMarker(ctx); absent != nil {
		return fmt.Errorf("%w: %v", absent, f.damage[0])
	}
	return nil
}

// again fetches the files that were damaged or not found once more: what a store says then, with its marker before and after it, is
// final.
func (f *fetch) again(ctx context.Context) error {
	if len(f.failed) == 0 {
		return nil
	}
	if !wait(ctx, fetchAgain) {
		return ctx.Err()
	}
	if err := f.checkMarker(ctx); err != nil {
		return err
	}
	failed := f.failed
	f.failed, f.damage, f.last = nil, nil, true
	slices.SortFunc(failed, compareFetch)
	return f.run(ctx, failed)
}

// run fetches the files in groups, so that no manifest is there before what it needs.
func (f *fetch) run(ctx context.Context, files []fetchFile) error {
	for len(files) > 0 {
		n := 1
		for n < len(files) && sameGroup(files[0], files[n]) {
			n++
		}
		group := files[:n]
		files = files[n:]
		each := func(yield func(fetchFile) bool) {
			for _, file := range group {
				if !yield(file) {
					return
				}
			}
		}
		if err := parallel.Do(ctx, fetchesAtOnce, each, f.work); err != nil {
			return err
		}
	}
	return nil
}

func sameGroup(a, b fetchFile) bool {
	return a.Kind == b.Kind && filepath.Dir(a.Name) == filepath.Dir(b.Name)
}

func (f *fetch) work(ctx context.Context, files <-chan fetchFile) error {
	for file := range files {
		err := f.file(ctx, file)
		if err != nil && !stream.Damaged(err) {
			return err
		}
		f.note(file, err)
	}
	return nil
}

func (f *fetch) note(file fetchFile, damage error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if damage != nil {
		f.failed, f.damage = append(f.failed, file), append(f.damage, damage)
	}
	if damage != nil && !f.last {
		return
	}
	f.done += file.Size
	f.progress(f.done, f.total)
}

// ensureDirectory makes the directories down to dir from that of the backups on, with durable names.
func (f *fetch) ensureDirectory(dir string) error {
	if _, ok := f.directories.Load(dir); ok || dir == f.backups {
		return nil
	}
	if err := f.ensureDirectory(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := durable.EnsureDir(durable.OS{}, dir); err != nil {
		return err
	}
	f.directories.Store(dir, nil)
	return nil
}

// file fetches a file, unless it is here: files appear whole.
func (f *fetch) file(ctx context.Context, file fetchFile) error {
	path, err := fetchPath(f.backups, file.Kind, file.Name)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == file.Size {
		return nil
	}
	if err := f.ensureDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	content, err := f.repository.Open(ctx, file.reference(), 0, -1)
	if err == nil {
		err = durable.WriteStream(path, 0o600, func(w io.Writer) error {
			_, err := io.Copy(w, content)
			return err
		})
		err = errors.Join(err, content.Close())
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", file.Name, err)
	}
	return nil
}
