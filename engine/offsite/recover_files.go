package offsite

import (
	"context"
	"fmt"

	"holdfast/engine/offsite/stream"
)

// restorers gives each restorer what is of its kinds.
type restorers struct {
	kinds map[string]restorer
	// order is that of finish: the metadata last, because a data directory with them counts.
	order     []restorer
	databases *databaseRestorer
	// known sums up what each database has.
	known *known
}

// newRestorers returns the restorers of an appliance into a data directory that has nothing yet. id is that of the repository.
func newRestorers(r *stream.Repository, id, dataDir string) (*restorers, error) {
	objects, err := newObjectsRestorer(r, id, dataDir)
	if err != nil {
		return nil, err
	}
	metadata, err := newMetadataRestorer(r, dataDir)
	if err != nil {
		return nil, err
	}
	secrets, databases := newSecretRestorer(dataDir), newDatabaseRestorer(r, dataDir)
	return &restorers{
		kinds: map[string]restorer{
			KindSecret: secrets, KindSegment: objects, KindBlob: objects,
			KindRepository: databases, KindWAL: databases, KindStale: databases, KindMetadata: metadata,
		},
		order:     []restorer{secrets, objects, databases, metadata},
		databases: databases,
		known:     newKnown(),
	}, nil
}

// kindOf returns the kind of data that a frame is about.
func kindOf(f stream.Frame) string {
	switch b := f.Body.(type) {
	case stream.File:
		return b.Kind
	case stream.FileDrop:
		return b.Kind
	case stream.Journal, stream.JournalDrop:
		return KindSegment
	case stream.Meta:
		return KindMetadata
	default: // WAL, WALFile and OwnerDrop
		return KindWAL
	}
}

func (r *restorers) of(kind string) (restorer, error) {
	found, ok := r.kinds[kind]
	if !ok {
		return nil, fmt.Errorf("%w: data of the kind %q", stream.ErrVersion, kind)
	}
	return found, nil
}

func (r *restorers) entry(ctx context.Context, e stream.Entry) error {
	to, err := r.of(e.Kind)
	if err != nil {
		return err
	}
	r.known.Put(e.Owner, e.Kind, e.Name, referenceOf(e))
	return to.entry(ctx, e)
}

func (r *restorers) frame(ctx context.Context, f stream.Frame) error {
	to, err := r.of(kindOf(f))
	if err != nil {
		return err
	}
	if err := to.frame(ctx, f); err != nil {
		return err
	}
	r.known.apply(f)
	return nil
}

func (r *restorers) finish(ctx context.Context) error {
	for _, to := range r.order {
		if err := to.finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

// databaseSize returns the bytes of a database's files in the store.
func (r *restorers) databaseSize(id string) (total int64) {
	for _, kind := range []string{KindRepository, KindWAL} {
		for _, ref := range r.known.Names(id, kind) {
			total += ref.Size
		}
	}
	return total
}
