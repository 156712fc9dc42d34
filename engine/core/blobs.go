package core

import (
	"fmt"

	"holdfast/blobstore"
	"holdfast/engine/meta"
)

// discardBatch is how many blobs are unlinked before their rows are removed.
const discardBatch = 1000

// KeepDiscarded has RemoveDiscarded remove nothing until ReleaseDiscarded is called: a recovery may bring objects back that
// were replaced, and replays their replacement before it knows.
func (c *Core) KeepDiscarded() { c.keepsDiscarded.Store(true) }

// ReleaseDiscarded ends KeepDiscarded.
func (c *Core) ReleaseDiscarded() { c.keepsDiscarded.Store(false) }

// RemoveDiscarded unlinks the blobs that no record refers to any more.
func (c *Core) RemoveDiscarded() error {
	for !c.keepsDiscarded.Load() {
		var refs []string
		var more bool
		if err := c.Meta.View(func(tx *meta.Tx) error {
			refs = tx.DiscardedBlobs(discardBatch)
			more = len(refs) > 0 || tx.Dropping()
			return nil
		}); err != nil || !more {
			return err
		}
		if err := c.Meta.Durable(); err != nil {
			return err
		}
		if err := c.removeBlobs(refs); err != nil {
			return err
		}
	}
	return nil
}

func (c *Core) removeBlobs(refs []string) error {
	blobs := make([]blobstore.Ref, len(refs))
	for i, ref := range refs {
		blobs[i] = blobstore.Ref(ref)
	}
	c.RemovalLock.RLock()
	err := c.Blobs.Remove(blobs...)
	c.RemovalLock.RUnlock()
	if err != nil {
		return fmt.Errorf("remove blobs: %w", err)
	}
	return c.Meta.Update(func(tx *meta.Tx) error { return tx.ForgetBlobs(refs) })
}
