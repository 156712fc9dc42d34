// Package repository stores the backups of one database as content-addressed
// chunks in one directory. FORMAT.md describes every file, byte by byte.
//
// Invariants:
//
//   - A backup exists if its manifest does, and then everything it needs is
//     synced to disk. A writer that does not end with Commit leaves no backup;
//     Clean and Collect remove its files.
//   - Reading a chunk returns the chunk that was written, or an error that wraps
//     ErrDamaged and names the file.
//   - Collect removes nothing that a manifest, an open Writer or an open Snapshot
//     needs. A crash at any step leaves a correct repository.
//   - After a failed sync this process writes nothing more: the kernel may have lost
//     dirty pages, even if later syncs succeed.
//   - Memory grows with the number of files and of changed ranges, not with the
//     bytes stored: index entries are read from disk when needed.
//
// Terms: a chunk is 128 KiB of a file, or the rest at its end. A record is a stored chunk, either whole or as an
// overlay of some pages on another chunk. A pack is a file of records. A session is everything that one Writer
// writes. An index describes the packs of one session, or of several after a merge. A manifest lists the files of
// one backup and their chunks.
package repository
