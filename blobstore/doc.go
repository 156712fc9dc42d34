// Package blobstore keeps named byte streams that are durable or not there at
// all: a blob exists once Publish or Commit has answered, whole, and survives a
// power cut from then on; before that there is nothing to find.
//
// The store chooses the name of each blob, an opaque Ref. What a blob is called
// by people, whose it is and whether it may be read are rows somewhere else. So
// nothing a client sends ever becomes a path, and a blob is never overwritten:
// new content is a new blob.
//
// # Notes
//
// Publish makes a blob durable together with a note, which is the caller's own
// description of it, as one record of a journal. Log makes a note durable alone.
// Options.Deliver is called with both, in the order of the journal, before these
// return; the caller brings its rows up to them when it likes, keeps in the same
// transaction the Position it has come to, and gives that to the next Open as
// Options.After: what follows it is delivered again. That way an acknowledged
// small blob with its row takes one sync, and many at once share it.
//
// Blobs of up to 64 KiB lie in the journal. Larger ones are files, durable with
// their names before their note is. Commit makes a file without a note; then the
// caller's row publishes it:
//
//	create:  Commit the blob, then commit the row
//	delete:  commit the row's end, then Remove the blob
//
// A crash between two steps leaves a file without a row and never a row without
// a blob; Walk finds such files at start.
//
// Space in the journal comes back by segments. The caller counts what it still
// needs of each; it writes what is left of a segment once more with Copy, and
// when its rows say so and are durable, drops the segment. A caller that would
// rather be able to go back to a moment keeps segments for longer: notes are in
// order and say when and what, replaced and removed blobs lie where they were
// until their segment is dropped.
//
// # On disk (format 1)
//
//	format                   "holdfast blobstore 1 <CRC-32C of what precedes>"
//	incoming/<id>            blobs being written; emptied by Open
//	parts/<id>               blobs written over a longer time, see Part
//	blobs/<directory>/<id>   committed files, about 4096 to a directory
//	journal/<segment>        records, about 64 MiB to a segment
//
// <directory> and <segment> are 8 and <id> 32 hexadecimal digits. The Ref of a
// file is "<directory>-<id>", that of a blob in the journal
// "j<segment>-<offset>", both of 8 digits. Directories are 0700, files 0600.
//
// A file is the content followed by the CRC-32C of each block of 256 KiB and a
// footer (checksums.go). A segment is a line "holdfast journal 1 <segment>
// <mark> <CRC-32C>" followed by records (record.go), each of them a header with
// the segment's mark, the record's own position, lengths and checksums, a note
// and perhaps a blob. The mark is random, so that a blob that looks like records
// is never taken for some when those before it are damaged. Reading verifies
// what it returns: bytes that are not those that were written are ErrDamaged.
//
// A process appends only to segments it has made itself. At the end of a segment
// a crash may leave zeros, which fill its last page, and any part of the last batch,
// which was never acknowledged: what is behind a record that is not whole is not
// looked at, unless the first record of a batch is among it. A batch is begun
// after the sync of the one before it, so then the record was whole once, and is
// damaged.
//
// # Order
//
// A record's bytes are synced, and for a new segment its name before that. A
// file's bytes are synced, it is renamed into the newest directory, and that
// directory is synced; commits that wait for the same directory share one sync.
// A Part gets a second name there, and loses its own once its note is durable.
// What is replayed is synced before it is delivered: a killed process may have
// left it to the kernel alone.
//
// After a sync that failed the kernel may have dropped the bytes, and a later
// sync would report success all the same; so the store turns read-only for good
// (ErrReadOnly) instead of trying again. A full disk fails what did not fit and
// nothing else.
package blobstore
