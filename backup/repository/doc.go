// Package repository stores the backups of one database as content-addressed
// chunks in one directory. FORMAT.md describes every file, byte by byte.
//
// Invariants:
//
//   - A backup exists if its manifest does, and then everything it needs is
//     synced to disk. A writer that does not end with Commit leaves nothing that
//     counts; Clean and Collect remove what it left.
//   - A chunk that is read is the chunk that was written, or an error that wraps
//     ErrDamaged and names the file.
//   - Collect removes nothing that a manifest, an open Writer or an open Snapshot
//     needs. A crash at any step leaves a correct repository.
//   - After a failed sync this process writes nothing more: data that the kernel
//     still holds may be lost, whatever it reports later.
//   - Memory grows with the number of files and of changed ranges, not with the
//     bytes stored: index entries are read from disk when needed.
//
// Words: a chunk is 128 KiB of a file, or what is left at its end. A record is a
// stored chunk, either whole or as an overlay of some pages on another chunk. A
// pack is a file of records. A session is everything that one Writer writes. An
// index describes the packs of one session, or of several after a merge. A
// manifest lists the files of one backup and their chunks.
package repository
