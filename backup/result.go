package backup

import (
	"fmt"

	"holdfast/blobstore"
)

// resultFormat is what Take writes, and the newest that Restore reads.
const resultFormat = 1

// compression names how the archive is compressed.
const compression = "zstd"

// Result describes a backup: all that Restore needs, kept by the caller (as
// JSON, if it likes) for as long as it keeps the backup.
type Result struct {
	Format      int    `json:"format"`
	Compression string `json:"compression"`

	Archive       blobstore.Ref `json:"archive"`
	ArchiveBLAKE3 string        `json:"archive_blake3"` // hex, of the blob as it is stored

	// The manifest is stored as PostgreSQL sent it, so this is also the digest
	// of the backup_manifest in a restored directory.
	Manifest       blobstore.Ref `json:"manifest"`
	ManifestBLAKE3 string        `json:"manifest_blake3"`

	SizeBytes   int64 `json:"size_bytes"`   // the archive, uncompressed
	StoredBytes int64 `json:"stored_bytes"` // archive and manifest as they are stored

	PostgresVersion string `json:"postgres_version"` // the server's, "15.18"
	Timeline        int    `json:"timeline"`
	StartLSN        string `json:"start_lsn"` // redo begins here; PostgreSQL's X/Y form
	StopLSN         string `json:"stop_lsn"`  // consistent from here on
}

// Refs returns the blobs of the backup: all of them, so removing these deletes
// it. Removing them twice is fine.
func (r Result) Refs() []blobstore.Ref { return []blobstore.Ref{r.Archive, r.Manifest} }

// check refuses a Result this program cannot restore.
func (r Result) check() error {
	if r.Format < 1 || r.Format > resultFormat {
		return fmt.Errorf("backup has format %d, and this program knows 1 to %d", r.Format, resultFormat)
	}
	if r.Compression != compression {
		return fmt.Errorf("backup is compressed with %q, and this program knows %q", r.Compression, compression)
	}
	_, err := r.walRange()
	return err
}

func (r Result) walRange() (walRange, error) {
	start, err := parseLSN(r.StartLSN)
	if err != nil {
		return walRange{}, fmt.Errorf("start of backup: %w", err)
	}
	stop, err := parseLSN(r.StopLSN)
	if err != nil {
		return walRange{}, fmt.Errorf("stop of backup: %w", err)
	}
	return walRange{timeline: r.Timeline, start: start, stop: stop}, nil
}
