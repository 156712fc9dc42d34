package objectstore

import (
	"context"
	"io"
	"iter"
	"time"
)

// MaxSize is the largest object that Create accepts, in bytes.
const MaxSize = 64 << 20

// Store is a place for objects. Every method may be called again after an error.
type Store interface {
	// Create stores the bytes of body below a key that has no object. It opens body
	// more than once. It returns ErrExists, and changes nothing, when the key has an
	// object that this call did not make.
	Create(ctx context.Context, key string, body Body, opts CreateOptions) error
	// Get opens an object, or a range of it. It returns ErrCorrupt for a range that
	// does not lie within the object.
	Get(ctx context.Context, key string, r Range) (*Object, error)
	// Stat describes an object.
	Stat(ctx context.Context, key string) (Info, error)
	// List yields the objects whose keys begin with prefix and come after the key
	// after, in ascending order of the bytes of their keys. It fetches pages as they
	// are needed. An error ends the iteration. RetainUntil and Mode are not set.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// Hidden reports whether a deletion hides an object whose key begins with prefix: the store has earlier versions of
	// it. It returns false where the store has no versions or does not show them to these credentials.
	Hidden(ctx context.Context, prefix string) (bool, error)
	// Delete removes an object in every version. It returns nil when there is none,
	// and ErrLocked when a retention forbids it.
	Delete(ctx context.Context, key string) error
	// Retain forbids the deletion of an object until a time. It never shortens.
	Retain(ctx context.Context, key string, r Retention) error
	// Probe finds out what the store can do. It writes objects of a few bytes below
	// "probe/" and removes them where it may.
	Probe(ctx context.Context) (Capabilities, error)
	// ClockSkew returns how far the clock of the store is ahead of this machine's, to about a second; 0 where the store does
	// not say. In a directory it writes an object of a few bytes below "probe/" and removes it.
	ClockSkew(ctx context.Context) (time.Duration, error)
	// String returns the URL of the store.
	String() string
	// Close releases connections. No other call may be under way or follow.
	Close() error
}

// Body is bytes of a known size that can be read more than once. Every Open returns
// a reader of the same bytes from the first on, which the store closes.
type Body interface {
	Size() int64
	Open() (io.ReadCloser, error)
}

// CreateOptions are what Create can do beyond storing bytes.
type CreateOptions struct {
	// Retention locks the new object; its zero value does not. A store without
	// Object Lock returns ErrUnsupported.
	Retention Retention
}

// Retention forbids that an object is deleted or overwritten until a time.
type Retention struct {
	Mode  Mode
	Until time.Time // with the precision of a second
}

// Mode says whose deletions a Retention forbids.
type Mode string

const (
	// Governance forbids them to all who do not hold the right to bypass it.
	Governance Mode = "GOVERNANCE"
	// Compliance forbids them to everybody.
	Compliance Mode = "COMPLIANCE"
)

// Range is Length bytes from Offset on; a Length of 0 means all that follow. The zero
// Range is the whole object.
type Range struct{ Offset, Length int64 }

// Info describes an object.
type Info struct {
	Key         string
	Size        int64     // bytes
	Modified    time.Time // by the clock of the store
	RetainUntil time.Time // zero without a retention
	Mode        Mode      // empty without a retention
}

// Object is an open object or a range of one. Reading continues by itself after a
// broken connection. The bytes of a whole object are compared with the checksum that
// Create stored, where the store keeps it, and the last read returns ErrCorrupt when
// they differ. The caller closes it.
type Object struct {
	Info   Info
	Length int64 // the bytes that the reader returns
	io.ReadCloser
}

// Capabilities are what Probe found.
type Capabilities struct {
	// Conditional means that a second creator of a key is refused by the store. Where
	// it is false, open the store with Options.Unconditional.
	Conditional bool
	// Checksums means that the store refuses bytes that do not match their checksum.
	Checksums bool
	// Metadata means that the store keeps the checksum and the mark by which Create
	// knows its own object.
	Metadata bool
	// ListsWrites means that a new object is listed at once.
	ListsWrites bool
	// Versioned means that the bucket keeps versions.
	Versioned bool
	// Lock means that the bucket has Object Lock. DefaultMode and DefaultRetention
	// are what the bucket applies by itself, empty for nothing.
	Lock             bool
	DefaultMode      Mode
	DefaultRetention time.Duration
	// MayDelete means that these credentials may delete objects.
	MayDelete bool
	// ClockSkew is what Store.ClockSkew returns.
	ClockSkew time.Duration
}
