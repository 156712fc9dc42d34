package offsite

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"

	"holdfast/engine/meta"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/parallel"
)

const (
	// captureLimit is how many bytes of changes wait in memory for the store.
	captureLimit = 16 << 20
	// chunksAtOnce is how many chunks are stored at once.
	chunksAtOnce = 4
	// metadataList is the name of the list of chunks.
	metadataList = "list"
	// captureInterval is how often a checkpoint looks whether a snapshot is in the log.
	captureInterval = 50 * time.Millisecond
)

// metadataPart copies the metadata. The log has a snapshot, and then the changes of
// every transaction. Where changes are missing, at the beginning of a run and after
// they were too many, another snapshot follows. So the metadata have no gap.
type metadataPart struct {
	db *meta.DB

	zstd    *zstd.Encoder
	walking sync.Mutex // held while the chunks are read: what one reader stores, the next one knows

	// Set by start.
	source *metadataSource
	cancel context.CancelFunc
	task   sync.WaitGroup
}

func newMetadataPart(db *meta.DB) *metadataPart {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constant
	}
	return &metadataPart{db: db, zstd: encoder}
}

func (p *metadataPart) start(w *stream.Writer, known *known) error {
	s := &metadataSource{part: p, writer: w, known: known, missing: make(chan struct{}, 1), held: true, since: time.Now()}
	capture, err := p.db.Capture(meta.CaptureOptions{Limit: captureLimit, Now: time.Now, Wake: w.Wake})
	if err != nil {
		return fmt.Errorf("capture the metadata: %w", err)
	}
	s.capture = capture
	ctx, cancel := context.WithCancel(context.Background())
	p.source, p.cancel = s, cancel
	s.missing <- struct{}{}
	p.task.Go(func() { s.run(ctx) })
	w.Add(s)
	return nil
}

func (p *metadataPart) stop() {
	p.cancel()
	p.task.Wait()
	p.source.capture.Close()
	p.source.end()
}

// entries returns the chunks of a snapshot and their list. The changes from its
// beginning to its end are in the log, with none missing.
func (p *metadataPart) entries(ctx context.Context) ([]stream.Entry, error) {
	s := p.source
	for {
		number, err := s.awaitSnapshot(ctx)
		if err != nil {
			return nil, err
		}
		chunks, whole, err := s.walk(ctx, number)
		if err != nil {
			return nil, err
		}
		if whole {
			return s.entriesOf(ctx, chunks)
		}
	}
}

// storedChunk is a chunk that the store has.
type storedChunk struct {
	hash stream.Hash // of the chunk; that of the file is another, as it is compressed
	ref  stream.Reference
}

func (c storedChunk) name() string { return c.hash.String() }

// listOf returns the hashes of chunks.
func listOf(chunks []storedChunk) []byte {
	list := make([]byte, 0, len(chunks)*len(stream.Hash{}))
	for _, c := range chunks {
		list = append(list, c.hash[:]...)
	}
	return list
}

// entriesOf returns the entries of a snapshot. A long list becomes a file.
func (s *metadataSource) entriesOf(ctx context.Context, chunks []storedChunk) ([]stream.Entry, error) {
	entries := make([]stream.Entry, 0, len(chunks)+1)
	for _, c := range chunks {
		entries = append(entries, stream.Entry{Kind: KindMetadata, Name: c.name(), Ref: c.ref})
	}
	list := stream.Entry{Kind: KindMetadata, Name: metadataList, Data: listOf(chunks)}
	if len(list.Data) > stream.MaxInline {
		var err error
		if list.Ref, err = s.writer.Store(ctx, bytes.NewReader(list.Data)); err != nil {
			return nil, err
		}
		list.Data = nil
	}
	return append(entries, list), nil
}

// walk reads all chunks and stores those that the store lacks. They are whole unless
// changes are missing since number was the count of the capture's beginnings.
func (s *metadataSource) walk(ctx context.Context, number uint64) (chunks []storedChunk, whole bool, err error) {
	s.part.walking.Lock()
	defer s.part.walking.Unlock()
	type unstored struct {
		index   int
		name    string
		content []byte
	}
	var mu sync.Mutex // guards chunks
	var broken error
	send := func(yield func(unstored) bool) {
		for chunk, err := range s.part.db.Chunks() {
			if broken = err; err != nil || !s.continues(number) {
				return
			}
			c := storedChunk{hash: blake3.Sum256(chunk)}
			ref, stored := s.known.Get("", KindMetadata, c.name())
			c.ref = ref
			mu.Lock()
			chunks = append(chunks, c)
			index := len(chunks) - 1
			mu.Unlock()
			if !stored && !yield(unstored{index, c.name(), s.part.zstd.EncodeAll(chunk, nil)}) {
				return
			}
		}
		whole = true
	}
	err = parallel.Do(ctx, chunksAtOnce, send, func(ctx context.Context, work <-chan unstored) error {
		for u := range work {
			ref, err := s.writer.Store(ctx, bytes.NewReader(u.content))
			if err != nil {
				return fmt.Errorf("store metadata: %w", err)
			}
			s.known.Put("", KindMetadata, u.name, ref)
			mu.Lock()
			chunks[u.index].ref = ref
			mu.Unlock()
		}
		return nil
	})
	if err == nil {
		err = broken
	}
	if err != nil || !whole {
		return nil, false, err
	}
	s.capture.Barrier()
	if !s.continues(number) {
		return nil, false, nil
	}
	s.forget(chunks)
	return chunks, true, nil
}

// forget removes the chunks from known that are not among those of the newest
// snapshot: a prune may remove their files.
func (s *metadataSource) forget(newest []storedChunk) {
	needed := map[string]bool{}
	for _, c := range newest {
		needed[c.name()] = true
	}
	for name := range s.known.Names("", KindMetadata) {
		if !needed[name] {
			s.known.Drop("", KindMetadata, name)
		}
	}
}

// continues reports whether nothing is missing since the capture began for the numberth
// time.
func (s *metadataSource) continues(number uint64) bool {
	status := s.capture.Status()
	return !status.Paused && status.Resumed == number
}
