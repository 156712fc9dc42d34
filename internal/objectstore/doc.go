// Package objectstore is the client of a store of objects on another machine or disk:
// an S3 bucket or a directory. [Open] makes one from its URL.
//
// An object is bytes of a known size, at most MaxSize, below a key. Create never
// overwrites: of several creators of a key one succeeds and the others get ErrExists,
// where the store can promise that; Probe says whether it can. An object is there
// whole or not at all, and durable when Create returns nil. Create returns an error
// also when the object was stored and the answer was lost for good, so a caller that
// repeats it later treats ErrExists as a reason to compare.
//
// Keys are relative to the URL's prefix: segments of letters, digits and "._=-" that
// are separated by "/", none of which begins with "."; at most 512 bytes. No key may
// be a directory of another one.
//
// Operations repeat what a busy, slow or broken store makes fail, with back-off, for
// as long as Options.Patience. What remains is an *Error that wraps one of the Err…
// values here, or an error of the context or of the caller's Body. Its text names the
// act, the key and the remedy, and holds no secret. A Store needs memory for a few
// buffers of each operation under way, whatever the sizes of the objects, and is safe
// for concurrent use.
//
// Package objectstoretest has the suite that every Store passes, real servers to run
// it against, and a proxy that injects faults. DESIGN.md says how the S3 client behaves and
// why.
package objectstore
