// Package blobstore keeps named byte streams. A blob exists, complete and safe
// from a power cut, once Publish or Commit has returned; before that there is
// nothing to find.
//
// The store chooses the name of each blob, an opaque Ref. What people call a
// blob, who owns it and who may read it are rows elsewhere. Nothing a client
// sends becomes a path, and no blob is overwritten: new content is a new blob.
//
// # Notes
//
// Publish makes a blob durable together with a note, the caller's description of
// it, in one record of a journal. Log makes a note durable without a blob. Both
// call Options.Deliver, in the order of the journal, before they return. The
// caller applies the notes to its rows when it likes, stores in the same
// transaction the Position it has reached, and passes that to the next Open as
// Options.After: what follows is delivered again. A small blob and its row
// therefore take one sync, which concurrent callers share.
//
// Blobs of up to 64 KiB are in the journal. Larger ones are files, which are
// durable with their names before their note is. Commit creates a file without a
// note; the caller's row publishes it:
//
//	create:  Commit the blob, then commit the row
//	delete:  delete the row, then Remove the blob
//
// A crash between two steps leaves a file without a row, never a row without a
// blob. Walk finds such files at start.
//
// Space in the journal is reclaimed by segments. The caller counts what it needs
// of each segment, appends the rest of a segment again with Copy, and drops the
// segment when its rows say so durably. Until then replaced and removed blobs
// stay where they were.
//
// # On disk (format 1)
//
//	format                   "holdfast blobstore 1 <CRC-32C of what precedes>"
//	incoming/<id>            blobs being written; emptied by Open
//	parts/<id>               blobs written over a longer time, see Part
//	blobs/<directory>/<id>   committed files, about 4096 in a directory
//	journal/<segment>        records, about 64 MiB in a segment
//
// <directory> and <segment> are 8 and <id> is 32 hexadecimal digits. The Ref of a
// file is "<directory>-<id>", that of a blob in the journal
// "j<segment>-<offset>", both of 8 digits. Directories are 0700, files 0600.
//
// A file is the content followed by the CRC-32C of each block of 256 KiB and a
// footer (checksums.go). A segment is a line "holdfast journal 1 <segment>
// <mark> <CRC-32C>" followed by records (record.go). Each record is a header
// with the segment's mark, its own position, lengths and checksums, then a note
// and perhaps a blob. The mark is random, so that the content of a blob cannot be
// taken for records when those before it are damaged. Reads are verified: bytes
// that are not what was written are ErrDamaged.
//
// A process appends only to segments that it created. At the end of a segment a
// crash may leave zeros, which fill its last page, and any part of the last batch,
// which was never acknowledged. What follows an incomplete record is therefore
// ignored, unless it contains the first record of a batch: a batch begins after
// the sync of the one before it, so the record was complete and is damaged.
//
// # Order
//
// A new segment's name is synced, then the records in it. A file's bytes are
// synced, it is renamed into the newest directory, and that directory is synced;
// commits that wait for the same directory share a sync. A Part gets a second
// name there and loses its own once its note is durable. What is replayed is
// synced before it is delivered: a process that was killed may have left it in the
// kernel only.
//
// After a failed sync the kernel may have dropped the bytes although a later sync
// succeeds, so the store becomes read-only permanently (ErrReadOnly). A full disk
// fails what did not fit and nothing else.
package blobstore
