package backup

import (
	"context"
	"encoding/hex"

	"github.com/zeebo/blake3"

	"holdfast/blobstore"
)

// blobSink writes a blob and its digest.
type blobSink struct {
	blob *blobstore.Writer
	hash *blake3.Hasher
}

func newBlobSink(ctx context.Context, store *blobstore.Store) (*blobSink, error) {
	w, err := store.Create(ctx)
	if err != nil {
		return nil, err
	}
	return &blobSink{blob: w, hash: blake3.New()}, nil
}

// Write implements io.Writer.
func (s *blobSink) Write(p []byte) (int, error) {
	n, err := s.blob.Write(p)
	s.hash.Write(p[:n])
	return n, err
}

func (s *blobSink) digest() string { return hexDigest(s.hash) }

func hexDigest(h *blake3.Hasher) string { return hex.EncodeToString(h.Sum(nil)) }
