// Package blobstore stores named byte streams. A blob exists, is complete and survives a power cut once Publish or
// Commit has returned; before that it does not exist.
//
// The store chooses the name of each blob, an opaque Ref. The caller keeps user-visible names, owners and
// permissions in its own rows. No client input becomes a path, and no blob is overwritten: new content is a new
// blob.
//
// # Notes
//
// Publish makes a blob durable together with a note, the caller's description of it, in one record of a journal. Log
// makes a note durable without a blob. Both call Options.Deliver, in journal order, before they return. The caller
// applies the notes to its rows at any time, stores in the same transaction the Position it has reached, and passes
// that to the next Open as Options.After: later notes are delivered again. A small blob and its row therefore take
// one sync, which concurrent callers share.
//
// Blobs of up to 64 KiB are in the journal. Larger ones are files, which are durable with their names before their
// note is. Commit creates a file without a note; the caller's row publishes it:
//
//	create:  Commit the blob, then commit the row
//	delete:  delete the row, then Remove the blob
//
// A crash between two steps leaves a file without a row, never a row without a blob. Walk finds such files at start.
//
// The caller reclaims space in the journal by segments. It counts the records it needs in each segment, appends the
// remaining ones again with Copy, and drops the segment once the rows durably no longer refer to it. Until then
// replaced and removed blobs keep their space.
//
// # A copy elsewhere
//
// A Tap reads what is durable, later than it happened if need be: the journal's new bytes with the time of each batch, what
// is removed, and the files that are published. Nothing waits for it. The bytes of a removed segment or file that it has not
// read are kept by an open file, up to a bound, so that a copy is complete at every moment and not only at the end.
//
// A Restorer makes a store of such a copy. It writes the journal and lists the files that are elsewhere: they are away.
// Evict makes a file away that the copy has: it lists the file durably, then removes it. What is away is not lost: Has
// reports it, and Walk leaves it out. Reading one fetches it, whole if it is small, otherwise what is read; what was fetched
// whole is kept on the disk if there is room, and stays listed, so that it can be evicted again at once. A listed file that
// is damaged here is fetched in the same way after ReadCopy, and stays until what was fetched takes its place.
//
// # On disk (format 1)
//
//	format                   "holdfast blobstore 1 <CRC-32C of the preceding text>"
//	incoming/<id>            blobs being written; emptied by Open
//	parts/<id>               blobs written over a longer time, see Part
//	blobs/<directory>/<id>   committed files, about 4096 in a directory
//	journal/<segment>        records, about 64 MiB in a segment
//	away/<first>-<last>      lists of files that can be fetched (away.go), each merged from the lists of those numbers
//
// <directory> and <segment> are 8 hexadecimal digits, <id> is 32. The Ref of a file is "<directory>-<id>", that of a
// blob in the journal "j<segment>-<offset>", both of 8 digits. Directories are 0700, files 0600.
//
// A file is the content followed by the CRC-32C of each block of 256 KiB and a footer (checksums.go). A segment is a
// line "holdfast journal 1 <segment> <mark> <CRC-32C>" followed by records (record.go). Each record is a header with
// the segment's mark, the record's position, lengths and checksums, then a note and an optional blob. The mark is
// random, so that blob content cannot be mistaken for records when those before it are damaged. Reads are verified:
// bytes that differ from what was written are ErrDamaged. Reader.Verified gives away a file whose blocks were read and verified
// within the last minute.
//
// A process appends only to segments that it created. At the end of a segment a crash may leave zeros that were written
// ahead, and any part of the last batch, which was never acknowledged. The bytes after an incomplete record
// are therefore ignored, unless they contain the first record of a batch: a batch begins after the sync of the
// previous one, so the record was complete and is damaged.
//
// # Order
//
// A new segment's name is synced before its records. A file's bytes are synced, the file is renamed into the newest
// directory, and that directory is synced; commits that wait for the same directory share a sync. A Part gets a
// second name there and loses its own once its note is durable. Replayed records are synced before they are
// delivered: a process that was killed may have left them only in the kernel.
//
// After a failed sync the kernel may have dropped the bytes although a later sync succeeds, so the store becomes
// read-only permanently (ErrReadOnly). A full disk fails only the writes that did not fit. A record that was refused is cut
// off, and the new end synced, before its caller is told; if that fails, the store becomes read-only too, and the record's
// file stays, because the next Open may find the record.
package blobstore
