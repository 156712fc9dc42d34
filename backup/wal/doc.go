// Package wal archives the write-ahead log (WAL) of one database, finds positions in it, and feeds recovery from it.
// Callers provide sessions with servers and their directories. Of backups it knows only the start and the stop.
//
// Invariants:
//
//   - WAL that the server may remove because of a [Receiver] is durable and was
//     checked: the CRC of every record and its link to the previous record, the
//     address and timeline of every page. A failed sync ends the receiver; it
//     is never retried.
//   - The archive stays correct after a SIGKILL at any moment: [Open] recovers it,
//     and receiving continues without a gap.
//   - WAL that will never arrive is a recorded [Gap]. Missing or damaged WAL is
//     reported as a [GapError] that names the segment before anything relies on it.
//   - [Archive.Resolve] is exact to the record. It uses the times written in the
//     WAL, not a clock.
//   - A server fed by [Recovery] never promotes itself before its target: if it
//     lacks WAL, it waits.
//   - Memory is bounded: a few MiB for each receiver.
//
// The package uses the terms of package xlog, and these: a partial segment is one that is not full or not compressed
// yet. A generation is one data directory of a database; a restore creates the next one, which forks from its parent
// at a position, so two generations may use one timeline number for different WAL. A span is the part of a
// generation's timeline up to the next fork. A summary contains a segment's commit times and changed pages.
// DESIGN.md explains how the package works, FORMAT.md the files.
package wal
