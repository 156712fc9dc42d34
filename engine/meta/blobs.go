package meta

import "fmt"

// A blob is live while a record refers to it, and discarded until it is unlinked.
// A blob without a row is an orphan.
const (
	liveBlobsBucket      = "blobs.live"
	discardedBlobsBucket = "blobs.discarded"
)

// ClaimBlob records that a record of this transaction refers to ref, even if
// another record did so until now.
func (tx *Tx) ClaimBlob(ref string) error {
	return tx.moveBlob(ref, discardedBlobsBucket, liveBlobsBucket)
}

// DiscardBlob records that no record refers to ref any more. It may be unlinked
// once the transaction is durable.
func (tx *Tx) DiscardBlob(ref string) error {
	return tx.moveBlob(ref, liveBlobsBucket, discardedBlobsBucket)
}

func (tx *Tx) moveBlob(ref, from, to string) error {
	if err := tx.bolt.Bucket([]byte(from)).Delete([]byte(ref)); err != nil {
		return fmt.Errorf("remove blob from %s: %w", from, err)
	}
	if err := tx.bolt.Bucket([]byte(to)).Put([]byte(ref), []byte{1}); err != nil {
		return fmt.Errorf("add blob to %s: %w", to, err)
	}
	return nil
}

// ForgetBlobs removes the rows of discarded blobs that were unlinked, and discards
// the next blobs of a dropped bucket.
func (tx *Tx) ForgetBlobs(refs []string) error {
	b := tx.bolt.Bucket([]byte(discardedBlobsBucket))
	for _, ref := range refs {
		if err := b.Delete([]byte(ref)); err != nil {
			return fmt.Errorf("forget blob: %w", err)
		}
	}
	return tx.discardDropped()
}

// BlobKnown reports whether ref has a row, live or discarded.
func (tx *Tx) BlobKnown(ref string) bool {
	return tx.BlobLive(ref) || tx.bolt.Bucket([]byte(discardedBlobsBucket)).Get([]byte(ref)) != nil
}

// BlobLive reports whether a record refers to ref.
func (tx *Tx) BlobLive(ref string) bool {
	return tx.bolt.Bucket([]byte(liveBlobsBucket)).Get([]byte(ref)) != nil
}

// DiscardedBlobs returns up to limit blobs that are waiting to be unlinked.
func (tx *Tx) DiscardedBlobs(limit int) []string {
	var refs []string
	cursor := tx.bolt.Bucket([]byte(discardedBlobsBucket)).Cursor()
	for key, _ := cursor.First(); key != nil && len(refs) < limit; key, _ = cursor.Next() {
		refs = append(refs, string(key))
	}
	return refs
}
