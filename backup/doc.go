// Package backup takes physical backups of a PostgreSQL server into a
// repository of chunks and makes data directories of them again. It knows
// servers, directories and the WAL archive by plain arguments and keeps nothing
// beside the repository.
//
// What it promises:
//
//   - A backup that Take returned is whole: every file of the data directory
//     that a restore needs, pages with checksums that are right, and the WAL
//     from start to stop in the archive. It is there after a power cut.
//   - A Take that fails or is cancelled leaves nothing that counts.
//   - A directory that Restore returned without error survives a power cut and
//     holds exactly what the backup lists. Until then it has no
//     global/pg_control, without which PostgreSQL does not start.
//   - A byte that changed in the stored backup is found and named, and never
//     restored.
//   - Memory does not grow with the size of the database, only, slightly, with
//     its number of files.
//
// Words: those of package repository; the start and stop of a backup are the
// LSNs between which WAL must be replayed over it. DESIGN.md says how it works
// and why.
package backup
