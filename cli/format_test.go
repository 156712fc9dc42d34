package cli_test

import (
	"encoding/binary"
	"testing"

	"go.etcd.io/bbolt"
)

// setFormat writes a format version into a metadata file, as a later program
// would.
func setFormat(t *testing.T, path string, version uint32) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("format")).Put([]byte("version"), binary.BigEndian.AppendUint32(nil, version))
	}); err != nil {
		t.Fatal(err)
	}
}
