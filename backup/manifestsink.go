package backup

import (
	"context"
	"fmt"
	"io"

	"holdfast/blobstore"
)

// manifestSink takes the manifest, matches it with the archive's files and
// stores it. It begins to read when the archive is complete.
type manifestSink struct {
	blob    *blobSink
	archive *archiveSink
	check   *feed // nil until the first byte

	wal walRange // read after check has finished
}

func newManifestSink(ctx context.Context, store *blobstore.Store, archive *archiveSink) (*manifestSink, error) {
	blob, err := newBlobSink(ctx, store)
	if err != nil {
		return nil, err
	}
	return &manifestSink{blob: blob, archive: archive}, nil
}

// Write implements io.Writer.
func (s *manifestSink) Write(p []byte) (int, error) {
	if s.check == nil {
		if err := s.begin(); err != nil {
			return 0, err
		}
	}
	if n, err := s.check.Write(p); err != nil {
		return n, err
	}
	return s.blob.Write(p)
}

// begin ends the archive, whose files the manifest is matched with.
func (s *manifestSink) begin() error {
	if err := s.archive.finish(); err != nil {
		return err
	}
	s.check = startFeed(func(r io.Reader) (err error) {
		s.wal, err = readManifest(r, s.archive.files.take)
		return err
	})
	return nil
}

// finish judges the backup: all the manifest lists is in the archive, nothing
// else is but WAL, and that reaches from start to stop.
func (s *manifestSink) finish() error {
	if s.check == nil {
		return fmt.Errorf("server sent no manifest")
	}
	if err := s.check.finish(); err != nil {
		return err
	}
	if err := s.archive.files.onlyWAL(); err != nil {
		return err
	}
	return s.wal.covered(s.archive.files)
}

// abort leaves nothing, at any time before the commit.
func (s *manifestSink) abort() error {
	if s.check != nil {
		s.check.cancel()
	}
	return s.blob.blob.Abort()
}
