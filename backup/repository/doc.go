// Package repository keeps the backups of one database as content-addressed
// chunks in one directory. FORMAT.md says what lies where, byte by byte.
//
// What it promises:
//
//   - A backup exists when its manifest does, and then everything it needs is
//     on disk and synced. A writer that ends in any other way than by Commit
//     leaves nothing that counts; Clean and Collect remove what it left.
//   - A chunk that is read is the chunk that was written, or an error that
//     wraps ErrDamaged and names the file.
//   - Collect removes nothing that a manifest, a running Writer or an open
//     Snapshot needs. A crash at any of its steps leaves a good repository.
//   - After a failed sync nothing more is written by this process: what the
//     kernel still has in memory may be lost, whatever it says later.
//   - Memory grows with the number of files and of changed places, not with
//     the bytes: indexes are read where they lie.
//
// Words: a chunk is 128 KiB of a file, or what its end has; a record is a chunk
// as it is stored, either whole or as an overlay of some pages on another
// chunk; a pack is a file of records; a session is one writing of records; an
// index describes packs, those of one session or what was merged of several;
// a manifest is the list of one backup's files and their chunks.
package repository
