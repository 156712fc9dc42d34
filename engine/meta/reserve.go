package meta

const (
	// reservePages is the bucket in reserveBucket whose rows occupy the reserve.
	reserveBucket = "reserve"
	reservePages  = "pages"

	// reserveRows rows of reserveRow bytes are about 1 MiB.
	reserveRows = 16
	reserveRow  = 64_000
)

// The reserve is about 1 MiB of rows without content. Open removes them, which leaves free pages in the file. On a full
// disk the file cannot grow, so these pages are what a start can write its changes to, and a command on a stopped
// appliance. FillReserve takes them from the running appliance, so that what it writes on a full disk cannot use them up.

// FillReserve adds what is missing from the reserve. Without enough free space it adds what it can and returns the
// error; the reserve's transactions are apart from those of other changes, so none of those fails with it.
func (db *DB) FillReserve() error {
	for {
		var full bool
		if err := db.View(func(tx *Tx) error {
			full = nextInReserve(tx.bolt) == reserveRows
			return nil
		}); err != nil || full {
			return err
		}
		if err := db.transact(addToReserve); err != nil {
			return err
		}
	}
}

// nextInReserve returns the number of the first row that is missing.
func nextInReserve(tx boltTx) byte {
	rows := tx.Bucket([]byte(reserveBucket)).Bucket([]byte(reservePages))
	if rows == nil {
		return 0
	}
	last, _ := rows.Cursor().Last()
	return last[0] + 1
}

func addToReserve(tx boltTx) error {
	number := nextInReserve(tx)
	rows, err := tx.Bucket([]byte(reserveBucket)).CreateBucketIfNotExists([]byte(reservePages))
	if err != nil {
		return err
	}
	return rows.Put([]byte{number}, make([]byte, reserveRow))
}

// ReleaseReserve makes the pages of the reserve free for other changes. It needs only as many free pages as the commit
// before it has left.
func (db *DB) ReleaseReserve() error { return db.transact(releaseReserve) }

func releaseReserve(tx boltTx) error {
	reserve := tx.Bucket([]byte(reserveBucket))
	if reserve.Bucket([]byte(reservePages)) == nil {
		return nil
	}
	return reserve.DeleteBucket([]byte(reservePages))
}
