// Package backup takes physical backups of a PostgreSQL server and makes data
// directories of them again. It knows servers and blobs by plain arguments and
// keeps nothing itself: Take returns a Result, the caller stores it, Restore
// and Result.Refs work from it.
//
// What it promises:
//
//   - A Result is returned only for a backup that is whole: every file the
//     server's manifest lists came with the listed size and CRC-32C, nothing
//     else came but WAL, and the WAL reaches from the start to the stop.
//   - A Take that fails, or is cancelled, leaves no blob.
//   - A directory that Restore returned without error survives a power cut and
//     holds exactly what the manifest lists and the WAL. Until then it has no
//     global/pg_control, without which PostgreSQL does not start.
//   - A byte that changed in the stored backup is found and named.
//   - Memory does not grow with the size of the database, only, slightly, with
//     its number of files (about 150 bytes each).
//
// Words: the archive is the tar stream of the data directory with its WAL,
// compressed; the manifest is PostgreSQL's backup_manifest; contents are the
// files of either, by name. DESIGN.md says how it works and why.
package backup
