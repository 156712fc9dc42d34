package meta

import (
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// Snapshot writes a consistent copy of the file to w while changes continue.
func (db *DB) Snapshot(w io.Writer) error {
	return db.SnapshotIf(w, func(*Tx) error { return nil })
}

// Commits returns the number of the last commit. It never decreases in a file.
func (db *DB) Commits() (n uint64, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		n = uint64(tx.ID())
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read the number of the last commit: %w", err)
	}
	return n, nil
}

// SnapshotIf is Snapshot, but writes nothing if check, which sees the state to be
// written, returns an error.
func (db *DB) SnapshotIf(w io.Writer, check func(*Tx) error) error {
	err := db.view(func(tx *bbolt.Tx) error {
		if err := check(&Tx{bolt: boltTx{tx: tx}}); err != nil {
			return err
		}
		_, err := tx.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy metadata: %w", err)
	}
	return nil
}

// Check reads the metadata file at path and returns the errors in its structure. No
// process may have the file open for writing.
func Check(path string) error {
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open metadata %s: %w", path, err)
	}
	var wrong []error
	err = bolt.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			wrong = append(wrong, err)
		}
		return nil
	})
	if err = errors.Join(append(wrong, err, bolt.Close())...); err != nil {
		return fmt.Errorf("check metadata %s: %w", path, err)
	}
	return nil
}
