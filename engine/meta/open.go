package meta

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockTimeout is how long Open waits for another process to release the file.
const lockTimeout = 300 * time.Millisecond

var (
	// ErrLocked means that another process has the file open.
	ErrLocked = errors.New("the metadata is in use by another holdfast process")
	// ErrClosed means that the store was closed before the change was attempted.
	ErrClosed = errors.New("the metadata store is closed")
)

// DB is the open metadata file. It is safe for use by many goroutines.
type DB struct {
	bolt        *bbolt.DB
	file        *os.File                          // of bolt, which closes it
	update      func(func(*bbolt.Tx) error) error // bolt.Update, which tests replace
	readers     *readers
	writeBehind *writeBehindQueue
	records     *recordCache
	queue       chan *commit
	closing     chan struct{}
	done        chan struct{}
	once        sync.Once
	events      atomic.Pointer[EventSource]
	wakes       wakes
	damage      damageLog

	capturing sync.Mutex // held during a transaction, until its changes are in the queue
	capture   *Capture   // nil when nobody captures; under capturing
	failed    error      // an ErrReadOnly if the last commit is not durable; under capturing
}

// Open opens the metadata file at path, making it with mode 0600 when it is
// absent. It returns ErrLocked when another process has it open and a
// *NewerFormatError when a newer program wrote it; in both cases it changes
// nothing. The caller closes the DB.
func Open(path string) (*DB, error) {
	bolt, file, err := openBolt(path)
	if err != nil {
		return nil, err
	}
	if err = bolt.View(checkFormat); err == nil {
		err = rewriteLastPages(bolt, file) // the process before may have ended without
	}
	if err == nil {
		err = bolt.Update(prepare)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare metadata: %w", err), bolt.Close())
	}
	db := &DB{
		bolt:        bolt,
		file:        file,
		update:      bolt.Update,
		readers:     newReaders(),
		writeBehind: newWriteBehindQueue(),
		records:     newRecordCache(),
		queue:       make(chan *commit, maxBatch),
		closing:     make(chan struct{}),
		done:        make(chan struct{}),
	}
	go db.commitLoop()
	return db, nil
}

// openBolt returns the open file, and the descriptor that bbolt uses.
func openBolt(path string) (bolt *bbolt.DB, file *os.File, err error) {
	bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockTimeout,
		// With the freelist synced, one long read makes the file grow without
		// bound; rebuilding it at start is cheap.
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			opened, err := os.OpenFile(path, flag, mode)
			if file == nil { // the later ones are for copies
				file = opened
			}
			return opened, err
		},
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, nil, ErrLocked
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open metadata %s: %w", path, err)
	}
	// Sync even if the file is not new: the process that created it may have crashed
	// before this.
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return nil, nil, errors.Join(err, bolt.Close())
	}
	return bolt, file, nil
}

// syncDirectory makes the file names in dir durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open data directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}
	return nil
}

// Close waits for changes in progress, commits the queued ones and closes the file.
// Later changes return ErrClosed. Calling Close twice is fine.
func (db *DB) Close() error {
	var err error
	db.once.Do(func() {
		close(db.closing)
		<-db.done
		db.writeBehind.end()
		err = db.bolt.Close()
	})
	return err
}
