package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/pgcontrol"
)

// ErrNotShutDown means that the data directory's server is running, or was not shut down cleanly.
var ErrNotShutDown = errors.New("the server was not shut down cleanly")

// Shutdown is the shutdown checkpoint of a server, its last WAL record.
type Shutdown struct {
	Timeline   uint32
	Checkpoint xlog.LSN // where the record starts
}

// Offsets in pg_control, the same in every major version (ControlFileData in pg_control.h).
const (
	controlCheckpoint = 32
	controlTimeline   = 48 // in the copy of the checkpoint, after its redo
)

// ReadShutdown returns the shutdown checkpoint of a data directory's server, or ErrNotShutDown.
func ReadShutdown(dir string) (Shutdown, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Shutdown{}, fmt.Errorf("read how a server ended: %w", err)
	}
	defer root.Close()
	control, err := readControl(root)
	if err != nil {
		return Shutdown{}, fmt.Errorf("read how a server ended: %w", err)
	}
	if !pgcontrol.ShutDown(control) {
		return Shutdown{}, ErrNotShutDown
	}
	return Shutdown{
		Timeline:   binary.LittleEndian.Uint32(control[controlTimeline:]),
		Checkpoint: xlog.LSN(binary.LittleEndian.Uint64(control[controlCheckpoint:])),
	}, nil
}
