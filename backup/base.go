package backup

import (
	"errors"

	"holdfast/backup/repository"
)

// base is the earlier backup that a new one is compared with.
type base struct {
	*repository.Snapshot
	files   map[string]*repository.Entry
	changes Changes // nil: unknown
}

// openBase opens the backup with that id. It returns nil if the backup does not exist or is damaged.
func openBase(repo *repository.Repository, id string) (*base, error) {
	if id == "" {
		return nil, nil
	}
	snapshot, err := repo.Snapshot(id)
	if errors.Is(err, repository.ErrNotFound) || errors.Is(err, repository.ErrDamaged) {
		return nil, nil // the new backup has no base
	}
	if err != nil {
		return nil, err
	}
	b := &base{Snapshot: snapshot, files: make(map[string]*repository.Entry, len(snapshot.Entries))}
	for i := range snapshot.Entries {
		b.files[snapshot.Entries[i].Path] = &snapshot.Entries[i]
	}
	return b, nil
}

func (b *base) close() {
	if b != nil {
		b.Snapshot.Close()
	}
}

// file returns the file at path in the base, or nil.
func (b *base) file(path string) *repository.Entry {
	if b == nil {
		return nil
	}
	return b.files[path]
}

// control returns the base's pg_control.
func (b *base) control() (content []byte, err error) {
	reader, err := b.Repository().NewReader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if e := b.file(controlFile); e != nil {
		err = reader.Each(e.Chunks, func(chunk []byte) error {
			content = append(content, chunk...)
			return nil
		})
	}
	return content, err
}

// changed returns the pages of a file that changed since the base. known is false if the changes are unknown or the
// file shrank.
func (b *base) changed(e *repository.Entry) (pages []uint32, known bool) {
	old := b.file(e.Path)
	if old == nil || b.changes == nil || e.Size < old.Size {
		return nil, false
	}
	return b.changes.Pages(e.Path)
}
