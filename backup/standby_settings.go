package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// standbySettings are the settings stored in pg_control, in the order of its fields.
var standbySettings = [...]string{
	"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions", "max_locks_per_transaction",
}

// StandbySettings returns a data directory's values of the settings that must not be smaller on a standby
// (CheckRequiredParameterValues).
func StandbySettings(dir string) (map[string]int, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the settings of a backup's server: %w", err)
	}
	defer root.Close()
	control, err := readControl(root)
	if err != nil {
		return nil, fmt.Errorf("read the settings of a backup's server: %w", err)
	}
	return standbySettingsOf(control)
}

// standbySettingsOf locates the settings by the fields after them in every major version: track_commit_timestamp,
// maxAlign, which is 8, and floatFormat (controlFormat).
func standbySettingsOf(control []byte) (map[string]int, error) {
	unknown := errors.New("read the settings of a backup's server: they are not at the expected position in " + controlFile)
	at := bytes.Index(control, controlFormat)
	if at < 64 || at%8 != 0 {
		return nil, unknown
	}
	number := func(at int) int { return int(int32(binary.LittleEndian.Uint32(control[at:]))) }
	if at -= 4; number(at) == 0 { // padding
		at -= 4
	}
	if number(at) != 8 {
		return nil, unknown
	}
	at -= 4 + 4*len(standbySettings)
	found := map[string]int{}
	for n, name := range standbySettings {
		value := number(at + 4*n)
		if value < 0 {
			return nil, unknown
		}
		found[name] = value
	}
	return found, nil
}
