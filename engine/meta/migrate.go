package meta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"holdfast/internal/durable"
)

// Format is the version of the file's layout that this program writes. To
// change the layout, raise it, add a migration, and keep a file of the old
// format in testdata for the test that opens it.
const Format = 1

// migration brings the file from one format to the next, in one transaction
// with the number of the format: killed at any moment, the next Open goes on
// with the step that is missing.
type migration struct {
	from int
	run  func(*bbolt.Tx) error
}

// layout is what a program knows of formats.
type layout struct {
	format     int
	migrations []migration
}

func currentLayout() layout { return layout{format: Format} }

// NewerFormatError says that the file was written by a newer program.
type NewerFormatError struct{ Found int }

// Error implements error.
func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("the data directory has format %d, this holdfast knows formats up to %d: use a newer holdfast", e.Found, Format)
}

var (
	formatBucket = []byte("format")
	formatKey    = []byte("version")
)

// Migrated says that Open has brought the file to another format.
type Migrated struct {
	From int
	Copy string // the file as it was before
}

// migrate brings the file to the layout's format, after a copy was put beside
// it; nil when it had that format, or is new.
func (l layout) migrate(bolt *bbolt.DB, path string) (*Migrated, error) {
	found, err := formatOf(bolt)
	if err != nil || found == 0 || found == l.format {
		return nil, err
	}
	if found > l.format {
		return nil, &NewerFormatError{Found: found}
	}
	done := &Migrated{From: found, Copy: fmt.Sprintf("%s.format-%d", path, found)}
	if err := durable.WriteStream(done.Copy, 0o600, func(w io.Writer) error { return writeTo(bolt, w, anything) }); err != nil {
		return nil, fmt.Errorf("keep the metadata of format %d: %w", found, err)
	}
	for _, step := range l.migrations {
		if step.from != found {
			continue
		}
		if err := bolt.Update(step.apply); err != nil {
			return nil, fmt.Errorf("bring the metadata from format %d to the next: %w", found, err)
		}
		found++
	}
	if found != l.format {
		return nil, fmt.Errorf("nothing brings the metadata from format %d to %d", found, l.format)
	}
	return done, nil
}

// apply is the step with the number it leads to.
func (m migration) apply(tx *bbolt.Tx) error {
	if err := m.run(tx); err != nil {
		return err
	}
	return putFormat(tx, m.from+1)
}

func putFormat(tx *bbolt.Tx, format int) error {
	return tx.Bucket(formatBucket).Put(formatKey, binary.BigEndian.AppendUint32(nil, uint32(format)))
}

// formatOf returns the file's format, 0 when the file is new.
func formatOf(bolt *bbolt.DB) (format int, err error) {
	return format, bolt.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(formatBucket)
		if b == nil {
			return nil
		}
		version := b.Get(formatKey)
		if len(version) != 4 {
			return &CorruptError{Where: "format/version"}
		}
		if format = int(binary.BigEndian.Uint32(version)); format == 0 {
			return &CorruptError{Where: "format/version"}
		}
		return nil
	})
}

// prepare makes the buckets that are missing; a new file gets the format.
func (l layout) prepare(tx *bbolt.Tx) error {
	if tx.Bucket(formatBucket) == nil {
		_, err := tx.CreateBucket(formatBucket)
		if err := errors.Join(err, putFormat(tx, l.format)); err != nil {
			return err
		}
	}
	for _, name := range bucketNames() {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	return nil
}
