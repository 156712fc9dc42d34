package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"holdfast/blobstore"
	"holdfast/engine/objects"
	"holdfast/engine/offsite/stream"
)

// piecesAtOnce is how many pieces of the journal are read from the store at once.
const piecesAtOnce = 8

// objectsRestorer writes the blob store of a recovery: its journal, and the list of the bodies that remain in the store
// until they are fetched.
type objectsRestorer struct {
	repository *stream.Repository
	id         string // of the repository
	blobs      *blobstore.Restorer
	reading    []*readPiece // in order
	tasks      sync.WaitGroup
}

// readPiece is a piece of the journal that is being read.
type readPiece struct {
	segment uint32
	from    int64
	done    chan struct{}
	content []byte // set, as is err, before done is closed
	err     error
}

var _ restorer = (*objectsRestorer)(nil)

// newObjectsRestorer removes what an interrupted recovery has left in the data directory.
func newObjectsRestorer(r *stream.Repository, id, dataDir string) (*objectsRestorer, error) {
	blobs, err := blobstore.NewRestorer(filepath.Join(dataDir, objects.Directory))
	if err != nil {
		return nil, err
	}
	return &objectsRestorer{repository: r, id: id, blobs: blobs}, nil
}

func (r *objectsRestorer) entry(ctx context.Context, e stream.Entry) error {
	if e.Kind == KindBlob {
		return r.blobs.Away(awayOf(r.id, e.Name, e.Ref))
	}
	segment, from, err := parsePiece(e.Name)
	if err != nil {
		return err
	}
	if e.Ref.Size > segmentPiece {
		return fmt.Errorf("%w: a piece of the journal has %d bytes", stream.ErrCorrupt, e.Ref.Size)
	}
	p := &readPiece{segment: segment.number, from: from, done: make(chan struct{}), content: e.Data}
	if e.Ref.IsZero() {
		close(p.done)
	} else {
		r.tasks.Go(func() {
			defer close(p.done)
			p.content, p.err = readFile(ctx, r.repository, e.Ref)
		})
	}
	if r.reading = append(r.reading, p); len(r.reading) < piecesAtOnce {
		return nil
	}
	return r.write()
}

func readFile(ctx context.Context, r *stream.Repository, ref stream.Reference) ([]byte, error) {
	body, err := r.Open(ctx, ref, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(body)
	return b, errors.Join(err, body.Close())
}

// write writes the first piece that is being read.
func (r *objectsRestorer) write() error {
	p := r.reading[0]
	<-p.done
	r.reading = r.reading[1:]
	if p.err != nil {
		return fmt.Errorf("read the journal: %w", p.err)
	}
	return r.blobs.Write(p.segment, p.from, p.content)
}

// flush writes everything that is being read.
func (r *objectsRestorer) flush() error {
	for len(r.reading) > 0 {
		if err := r.write(); err != nil {
			r.tasks.Wait()
			return err
		}
	}
	return nil
}

func (r *objectsRestorer) frame(_ context.Context, f stream.Frame) error {
	err := r.flush()
	if err != nil {
		return err
	}
	switch b := f.Body.(type) {
	case stream.Journal:
		err = r.blobs.Write(uint32(b.Segment), int64(b.From), b.Bytes)
	case stream.JournalDrop:
		err = r.blobs.Drop(uint32(b.Segment))
	case stream.File:
		err = r.blobs.Away(awayOf(r.id, b.Name, b.Ref))
	}
	// What was dropped stays on the list: an object that was replaced since comes back if the bytes of the new one are
	// missing. What belongs to no object is not fetched.
	if errors.Is(err, blobstore.ErrGap) {
		return fmt.Errorf("%w: %w", errGap, err)
	}
	return err
}

func (r *objectsRestorer) finish(context.Context) error {
	if err := r.flush(); err != nil {
		return err
	}
	return r.blobs.Finish()
}
