// Package wal archives the write-ahead log (WAL) of one database, finds
// positions in it, and feeds recovery from it. It is given sessions with servers
// and their directories; of backups it knows only where they start and stop.
//
// Invariants:
//
//   - What the server may remove because of a [Receiver] is durable and was
//     checked: the CRC of every record and its link to the record before, the
//     address and timeline of every page. A failed sync ends the receiver; it
//     is never retried.
//   - The archive is correct after a SIGKILL at any moment: [Open] recovers it,
//     and receiving continues without a gap.
//   - WAL that will never arrive is a recorded [Gap]. Missing or damaged WAL is a
//     [GapError] that names the segment before anything relies on it.
//   - [Archive.Resolve] is exact to the record. It uses the times written in the
//     WAL, not a clock.
//   - A server fed by [Recovery] never promotes itself before its target: without
//     the WAL it needs, it waits.
//   - Memory is bounded: a few MiB for each receiver.
//
// Words are those of package xlog, and: a partial segment is one that is not
// full. A generation is one data directory of a database; a restore makes the
// next one, which forks from its parent at a position, so two generations may
// use one timeline number for different WAL. A span is the part of a generation's
// timeline up to the next fork. A summary holds a segment's commit times and
// changed pages. DESIGN.md explains how the package works, FORMAT.md the files.
package wal
