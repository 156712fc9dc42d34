// Package wal archives the write-ahead log (WAL) of one database, finds
// positions in it, and feeds recovery from it. It knows servers by sessions and
// directories it is given, and nothing of backups but where they start and stop.
//
// What it promises:
//
//   - What the server may remove because of a [Receiver] is durable, and was
//     checked: every record's CRC and its link to the one before, every page's address and
//     timeline. A sync that fails ends the receiver; it is never tried again.
//   - The archive is right after a SIGKILL at any moment: [Open] settles what
//     was under way, and receiving goes on without a gap.
//   - WAL that will never come is a recorded [Gap]; WAL that is missing or
//     damaged is a [GapError] that names the segment, before anything relies on it.
//   - [Archive.Resolve] is exact to the record, by times that were written into
//     the WAL, not by any clock of the moment.
//   - A server fed by [Recovery] never promotes itself short of its target:
//     without the WAL it needs it waits.
//   - Memory is bounded: a few MiB for a receiver, whatever the database does.
//
// Words: a segment is a file of WAL of fixed size (16 MiB unless initdb was
// told otherwise), named as PostgreSQL names it. A partial segment is one that
// is not full. An incarnation is a generation of a data directory; a restore
// makes a new one, which forks from its parent at a position, and two of them
// may use one timeline number for different WAL. A summary says what is in a
// segment: commit times and changed pages. DESIGN.md says how it works and why,
// FORMAT.md what is on disk.
package wal
