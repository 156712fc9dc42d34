// Package xlog reads PostgreSQL's write-ahead log (WAL): positions, names of
// segments, history files of timelines, records, and the pages that records
// change. It reads bytes and knows neither files nor servers, and imports the
// standard library only.
//
// Invariants:
//
//   - [Scanner] returns a record only after it checked its CRC-32C, its link to
//     the record before, and the headers of the pages it is on.
//   - Memory for one record is bounded, whatever its length.
//   - [Changes] names every page of a main fork that the WAL changed, or reports
//     that it does not know.
//   - No input makes it panic; fuzz tests check this.
//
// Words are PostgreSQL's: an LSN is a position in the WAL, a segment a file of
// fixed size (16 MiB by default), a timeline a history of the WAL, forked from
// another at a promotion, and a resource manager the part of PostgreSQL that
// wrote a record.
package xlog
