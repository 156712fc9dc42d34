package backup

import (
	"context"
	"hash/crc32"
	"os"

	"holdfast/backup/repository"
)

// pieceWriter writes the chunks of a piece of a file. Zeros are there already.
type pieceWriter struct {
	ctx     context.Context
	r       *restoring
	f       *os.File // nil for pg_control, which waits in memory
	at, end int64
	crc     uint32
}

func (w *pieceWriter) chunk(content []byte) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	n := min(chunkSize, w.end-w.at)
	if content == nil {
		w.crc = repository.CombineCRC32C(w.crc, repository.ZerosCRC32C(n), n)
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
	if w.f == nil {
		w.r.control = append(w.r.control, content...)
		return nil
	}
	_, err := w.f.WriteAt(content, w.at)
	return err
}
