package meta

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// Format is the version of the file's layout that this program reads and
// writes. A program that changes the layout raises it.
const Format = 1

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

// checkFormat refuses a file of another format. A new file has no format yet.
func checkFormat(tx *bbolt.Tx) error {
	b := tx.Bucket(formatBucket)
	if b == nil {
		return nil
	}
	version := b.Get(formatKey)
	if len(version) != 4 || binary.BigEndian.Uint32(version) == 0 {
		return &CorruptError{Where: "format/version"}
	}
	if found := int(binary.BigEndian.Uint32(version)); found != Format {
		return &NewerFormatError{Found: found}
	}
	return nil
}

// prepare creates missing buckets, sets the format of a new file, and releases the
// reserve.
func prepare(tx *bbolt.Tx) error {
	if tx.Bucket(formatBucket) == nil {
		b, err := tx.CreateBucket(formatBucket)
		if err == nil {
			err = b.Put(formatKey, binary.BigEndian.AppendUint32(nil, Format))
		}
		if err != nil {
			return err
		}
	}
	for _, name := range bucketNames() {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	return releaseReserve(boltTx{tx: tx})
}
