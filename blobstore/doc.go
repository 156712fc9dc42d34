// Package blobstore keeps named byte streams that are durable or not there at
// all: a blob exists once Commit has answered, whole, and survives a power cut
// from then on; before that there is nothing to find.
//
// The store chooses the name of each blob, an opaque Ref. What a blob is called
// by people, whose it is and whether it may be read are rows somewhere else;
// writing the Ref into such a row is what publishes the blob. So nothing a
// client sends ever becomes a path, a blob is never overwritten (new content is
// a new blob), and the order of a caller's work is:
//
//	create:  Commit the blob, then commit the row
//	replace: Commit the new blob, commit the row, Remove the old blob
//	delete:  commit the row's end, then Remove the blob
//
// A crash between two of those steps leaves a blob without a row and never a
// row without a blob; Walk finds such blobs at start.
//
// On disk (format 1):
//
//	format                   "holdfast blobstore 1 <CRC-32C of what precedes>"
//	incoming/<id>            blobs being written; emptied by Open
//	blobs/<directory>/<id>   committed blobs, about 4096 to a directory
//
// <directory> is 8 and <id> 32 hexadecimal digits; the Ref is
// "<directory>-<id>". Directories are 0700, files 0600.
//
// The content itself is not checksummed here: keep Writer.CRC32C in the row.
//
// Commit syncs the file, renames it into the newest directory and syncs that
// directory; commits that wait for the same directory share one sync. After a
// sync that failed the kernel may have dropped the bytes, and a later sync
// would report success all the same; so the store turns read-only for good
// (ErrReadOnly) instead of trying again.
package blobstore
