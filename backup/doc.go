// Package backup takes physical backups of a PostgreSQL server into a repository
// of chunks, and restores data directories from them. Servers, directories and the
// WAL archive are plain arguments; the package stores nothing except in the
// repository.
//
// Invariants:
//
//   - A backup that Take returned is complete: it has every file of the data
//     directory that a restore needs, pages with correct checksums, and the WAL
//     from start to stop is in the archive. It survives a power cut.
//   - A Take that fails or is cancelled leaves nothing that counts.
//   - A directory that Restore returned without error survives a power cut and
//     contains exactly what the backup lists. Until then it has no
//     global/pg_control, without which PostgreSQL does not start.
//   - A changed byte in the stored backup is found and named, and never restored.
//   - Memory does not grow with the size of the database, and only slightly with
//     its number of files.
//
// Words are those of package repository; the start and stop of a backup are the
// LSNs between which WAL must be replayed over it. DESIGN.md explains how the
// package works.
package backup
