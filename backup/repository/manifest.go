package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"holdfast/internal/durable"
)

// Manifest describes one backup. Its directories and files are sorted by path, parents first.
type Manifest struct {
	Backup  Backup
	Entries []Entry

	// StoredSize is the size of the manifest file in bytes, set when it is read.
	StoredSize int64

	// root is the BLAKE3 over the hashes of all chunks in order: it binds the manifest to its content.
	root Hash
}

// Backup is the metadata of a backup.
type Backup struct {
	ID               string    `json:"id"`
	Label            string    `json:"label"`
	Type             string    `json:"type,omitempty"` // why it was made, in the caller's terms
	Generation       int       `json:"incarnation"`    // of the data directory, in the WAL archive
	StartedAt        time.Time `json:"started_at"`
	CompletedAt      time.Time `json:"completed_at"`
	PostgresVersion  string    `json:"postgres_version"`         // the server's, "15.18"
	SystemIdentifier uint64    `json:"system_identifier,string"` // the cluster's
	Timeline         uint32    `json:"timeline"`
	StartLSN         string    `json:"start_lsn"` // redo begins here; PostgreSQL's X/Y form
	StopLSN          string    `json:"stop_lsn"`  // consistent from here on
	SizeBytes        int64     `json:"size_bytes"`
	StoredBytes      int64     `json:"stored_bytes,omitempty"` // size of the packs and the index that the backup added
	WholeRead        bool      `json:"whole_read"`             // everything was read, not only changes since another backup

	// The files returned by pg_backup_stop; empty ones are not written.
	BackupLabel   string `json:"backup_label"`
	TablespaceMap string `json:"tablespace_map"`
}

// Entry is a directory or a file.
type Entry struct {
	Path    string // slash-separated, below the data directory
	Mode    fs.FileMode
	ModTime time.Time

	// Of a file:
	Size   int64
	CRC32C uint32 // of its content
	Chunks Chunks
}

// IsDir reports whether the entry is a directory.
func (e *Entry) IsDir() bool { return e.Mode.IsDir() }

// publishManifest publishes the manifest; from then on the backup exists.
func (r *Repository) publishManifest(m *Manifest) (digest string, size int64, err error) {
	if m.root, err = r.contentRoot(m); err != nil {
		return "", 0, err
	}
	b, sum, err := encodeManifest(m)
	if err != nil {
		return "", 0, err
	}
	path := r.path(ManifestName(m.Backup.ID))
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", 0, fmt.Errorf("backup %s already exists (%w)", m.Backup.ID, errors.Join(err, fs.ErrExist))
	}
	if err := r.writable(); err != nil {
		return "", 0, err
	}
	if err := r.noteSync(durable.Publish(r.fs, path, 0o600, durable.Bytes(b))); err != nil {
		// If only the sync of its name failed, the manifest may or may not survive a power cut, so the backup must
		// not exist.
		return "", 0, errors.Join(fmt.Errorf("publish manifest: %w", err), r.remove(path))
	}
	return fmt.Sprintf("%x", sum), int64(len(b)), nil
}

// Manifest reads a backup's manifest. It also returns its digest in hex.
func (r *Repository) Manifest(id string) (*Manifest, string, error) {
	name := ManifestName(id)
	b, err := r.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read manifest: %w", err)
	}
	m, sum, err := decodeManifest(name, b)
	if err != nil {
		return nil, "", err
	}
	m.StoredSize = int64(len(b))
	if m.Backup.ID != id {
		return nil, "", damaged(name, "it belongs to backup "+m.Backup.ID)
	}
	r.noteSessions(m)
	return m, fmt.Sprintf("%x", sum), nil
}

// Delete removes a backup. The next Collect removes the chunks that only it needed. Deleting an absent backup is not
// an error.
func (r *Repository) Delete(id string) error {
	if err := r.writable(); err != nil {
		return err
	}
	if err := r.remove(r.path(ManifestName(id))); err != nil {
		return err
	}
	return r.syncDir(r.path(manifestDir))
}

// validID reports whether id can be a file name.
func validID(id string) bool {
	return id != "" && len(id) <= 128 && fs.ValidPath(id) && id != "." && !containsAny(id, "/\\\x00")
}
