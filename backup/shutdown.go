package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"holdfast/backup/wal/xlog"
)

// ErrNotShutDown is a data directory whose server runs, or did not end in order.
var ErrNotShutDown = errors.New("the server was not shut down in order")

// Shutdown is the checkpoint with which a server was shut down, the last record
// it wrote.
type Shutdown struct {
	Timeline   uint32
	Checkpoint xlog.LSN // where the record starts
}

// Where pg_control of every major has them (ControlFileData of pg_control.h).
const (
	controlState      = 16
	controlCheckpoint = 32
	controlTimeline   = 48 // in the copy of the checkpoint, behind its redo

	stateShutDown = 1 // DB_SHUTDOWNED
)

// ReadShutdown returns how the server of a data directory was shut down;
// ErrNotShutDown when it was not.
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
	if binary.LittleEndian.Uint32(control[controlState:]) != stateShutDown {
		return Shutdown{}, ErrNotShutDown
	}
	return Shutdown{
		Timeline:   binary.LittleEndian.Uint32(control[controlTimeline:]),
		Checkpoint: xlog.LSN(binary.LittleEndian.Uint64(control[controlCheckpoint:])),
	}, nil
}
