// Package backup takes physical backups of a PostgreSQL server into a repository of chunks, and restores data
// directories from them. Servers, directories and the WAL archive are plain arguments; the package stores state only
// in the repository.
//
// Invariants:
//
//   - A backup that Take returned is complete and survives a power cut: it has every
//     file of the data directory that a restore needs, pages with correct checksums,
//     and the archive has the WAL from start to stop.
//   - A Take that fails or is cancelled leaves no backup.
//   - A directory that Restore returned without error survives a power cut and
//     contains exactly what the backup lists. Until then it has no
//     global/pg_control, without which PostgreSQL does not start.
//   - A changed byte in the stored backup is detected and located, and never restored.
//   - Memory does not grow with the size of the database, and only slightly with
//     its number of files.
//
// The package uses the terms of package repository. The start and stop of a backup are the LSNs between which WAL
// must be replayed over it. DESIGN.md explains how the package works.
package backup
