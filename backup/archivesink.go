package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"holdfast/blobstore"
)

// The encoder splits its input into jobs of four windows and works on two at
// once; this window keeps all its buffers under 50 MB.
const (
	encoderWindow      = 1 << 20
	encoderConcurrency = 2
)

// archiveSink takes the tar stream, sums the files in it, compresses and
// stores it.
type archiveSink struct {
	blob     *blobSink
	encoder  *zstd.Encoder
	check    *feed
	progress *progress

	files contents // what the archive held; read after check has finished
}

func newArchiveSink(ctx context.Context, store *blobstore.Store, p *progress) (*archiveSink, error) {
	blob, err := newBlobSink(ctx, store)
	if err != nil {
		return nil, err
	}
	encoder, err := zstd.NewWriter(blob, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(encoderWindow),
		zstd.WithEncoderConcurrency(encoderConcurrency), zstd.WithConcurrentBlocks(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compress archive: %w", err), blob.blob.Abort())
	}
	s := &archiveSink{blob: blob, encoder: encoder, progress: p}
	s.check = startFeed(func(r io.Reader) (err error) {
		s.files, err = archiveContents(r)
		return err
	})
	return s, nil
}

// Write implements io.Writer.
func (s *archiveSink) Write(p []byte) (int, error) {
	if n, err := s.check.Write(p); err != nil {
		return n, err
	}
	n, err := s.encoder.Write(p)
	if err != nil {
		return n, fmt.Errorf("compress archive: %w", err)
	}
	s.progress.add(n)
	return n, nil
}

// finish ends the archive, but for the commit of its blob.
func (s *archiveSink) finish() error {
	if err := s.check.finish(); err != nil {
		return err
	}
	if err := s.encoder.Close(); err != nil {
		return fmt.Errorf("compress archive: %w", err)
	}
	return nil
}

// abort leaves nothing, at any time before the commit.
func (s *archiveSink) abort() error {
	s.check.cancel()
	s.encoder.Close() // ends its goroutines; what it writes goes with the blob
	return s.blob.blob.Abort()
}
