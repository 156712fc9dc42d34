package backup

import (
	"context"
	"errors"
	"hash/crc32"
	"os"
	"sync"
	"syscall"

	"holdfast/backup/repository"
	"holdfast/internal/durable"
)

// directSize is the file size from which files are written with direct I/O. A restore, above all a verification,
// would otherwise evict the pages of running databases, and eviction takes longer than writing.
const directSize = pieceSize

// directBuffers are the buffers for these writes.
var directBuffers = sync.Pool{New: func() any { return durable.NewBuffer(1 << 20) }}

// pieceWriter writes the chunks of a piece of a file that already contains zeros.
type pieceWriter struct {
	ctx     context.Context
	r       *restoring
	f       *os.File // nil for pg_control, which is kept in memory
	at, end int64
	crc     uint32

	// waiting is buffered content before at. Without capacity, each chunk is
	// written immediately.
	waiting []byte
}

// direct switches the piece to direct I/O through buffer, which belongs to a durable.Buffer, if the file system
// supports it.
func (w *pieceWriter) direct(buffer []byte) {
	if durable.SetDirect(w.f, true) == nil {
		w.waiting = buffer[:0]
	}
}

func (w *pieceWriter) chunk(content []byte) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	n := min(chunkSize, w.end-w.at)
	if content == nil {
		w.crc = repository.CombineCRC32C(w.crc, repository.ZerosCRC32C(n), n)
		if err := w.flush(); err != nil {
			return err
		}
	} else {
		w.crc = crc32.Update(w.crc, castagnoli, content)
		if err := w.write(content); err != nil {
			return err
		}
	}
	w.at += n
	w.r.progress.add(n)
	return nil
}

func (w *pieceWriter) write(content []byte) error {
	switch {
	case w.f == nil:
		w.r.control = append(w.r.control, content...)
		return nil
	case cap(w.waiting) == 0:
		_, err := w.f.WriteAt(content, w.at)
		return err
	}
	if len(w.waiting)+len(content) > cap(w.waiting) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.waiting = append(w.waiting, content...)
	return nil
}

// flush writes the buffered content.
func (w *pieceWriter) flush() error {
	if len(w.waiting) == 0 {
		return nil
	}
	start := w.at - int64(len(w.waiting))
	_, err := w.f.WriteAt(w.waiting, start)
	if errors.Is(err, syscall.EINVAL) { // the device requires a larger alignment
		if err = durable.SetDirect(w.f, false); err == nil {
			_, err = w.f.WriteAt(w.waiting, start)
		}
	}
	w.waiting = w.waiting[:0]
	return err
}
