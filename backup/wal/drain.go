package wal

import (
	"encoding/binary"
	"fmt"

	"holdfast/backup/wal/xlog"
)

// Drain archives the WAL that a server wrote before it was shut down and that its generation in the archive lacks.
// dir is the server's pg_wal, last the start of the last record. No receiver may be running for the generation.
func (a *Archive) Drain(generation int, dir string, timeline uint32, last xlog.LSN) error {
	w, err := a.Writer(generation)
	if err != nil {
		return err
	}
	defer w.Close()
	received, end, ok := w.Latest()
	if !ok || received != timeline {
		return fmt.Errorf("nothing of timeline %d was received", timeline)
	}
	if end > last {
		return nil
	}
	if _, err := w.Start(timeline, end); err != nil {
		return err
	}
	from := source{dir: dir, timeline: timeline, size: w.branch.info().SegmentSize}
	defer from.close()
	var length [4]byte // xl_tot_len never spans pages
	if _, err := from.read(length[:], last); err != nil {
		return err
	}
	stop := last.AfterRecord(uint64(binary.LittleEndian.Uint32(length[:])), from.size)
	if err := copyWAL(w, &from, make([]byte, pieceSize), stop); err != nil {
		return err
	}
	_, _, err = w.Sync()
	return err
}
