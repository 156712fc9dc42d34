package backup

import (
	"bytes"
	"crypto/rand"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"holdfast/internal/durable"
)

// TestPieceWriter writes a piece with a hole: chunk by chunk, with direct I/O, and with a buffer that direct writes
// reject where supported, as a device with larger blocks rejects ours.
func TestPieceWriter(t *testing.T) {
	want := make([]byte, 11*chunkSize-3*durable.Align)
	rand.Read(want)
	hole := want[4*chunkSize : 5*chunkSize]
	clear(hole)
	round := directBuffers.Get().(*durable.Buffer)
	defer directBuffers.Put(round)
	for name, buffer := range map[string][]byte{"buffered": nil, "direct": round.Bytes, "refused": round.Bytes[8:]} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.Truncate(int64(len(want))); err != nil {
				t.Fatal(err)
			}
			w := &pieceWriter{ctx: t.Context(), r: &restoring{progress: &progress{}}, f: f, end: int64(len(want))}
			if buffer != nil {
				w.direct(buffer)
			}
			for at := 0; at < len(want); at += chunkSize {
				chunk := want[at:min(at+chunkSize, len(want))]
				if at == 4*chunkSize {
					chunk = nil
				}
				if err := w.chunk(chunk); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes are not what was written, %v", len(got), err)
			}
			if w.crc != crc32.Checksum(want, castagnoli) {
				t.Error("the checksum is not that of the content")
			}
		})
	}
}
