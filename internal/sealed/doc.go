// Package sealed encrypts what leaves the machine. A sealed object is a header and
// the plaintext in segments of 64 KiB, each encrypted with AES-256-GCM:
//
//	offset  bytes  header
//	0       8      "HOLDFAST"
//	8       1      version of the format, 1
//	9       1      size of a segment as a power of two, 16
//	10      2      zero
//	12      4      number of the master key, big-endian
//	16      32     salt, random for each object
//	48      16     check: whether key, name and header belong together
//
//	64 + i × 65552  segment i: up to 65536 bytes of plaintext, then a tag of 16
//
// The key of an object and its check are derived by HKDF-SHA256 from the master key,
// the salt and the object's name, which is its key in the off-site store. The nonce
// of a segment is its index and a flag that marks the last one; header and name are
// authenticated with each. A reader therefore refuses an object that was changed,
// truncated or extended, whose segments were swapped, that was renamed, or that
// another key sealed. Every segment but the last is full; only the single segment of
// an empty object is empty. So the sealed size follows from the plain size, see
// [Size], and a range of the plaintext can be read from a range of the object, see
// [Opener].
//
// Master keys are random and numbered. A [Ring] holds those of a store: objects are
// sealed with the newest and read with the one whose number they carry. [Wrap]
// encrypts a master key with age, to recipients or a passphrase, and [Unwrap] reads
// it back.
//
// All sizes are in bytes. Nothing here is safe for concurrent use except Key, Ring,
// Opener and what Seal returns. DESIGN.md says why the format is as it is.
package sealed
