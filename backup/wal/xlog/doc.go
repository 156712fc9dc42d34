// Package xlog reads PostgreSQL's write-ahead log (WAL): positions, segment names, timeline history files, records,
// and the pages that records change. It reads bytes and knows neither files nor servers, and imports only the
// standard library.
//
// Invariants:
//
//   - [Scanner] returns a record only after it checked its CRC-32C, its link to
//     the previous record, and the headers of its pages.
//   - Memory for one record is bounded, whatever its length.
//   - [Changes] contains every page of a main fork that the WAL changed, or reports
//     that the changes are unknown.
//   - No input causes a panic; fuzz tests check this.
//
// The terms are PostgreSQL's: an LSN is a position in the WAL, a segment a file of fixed size (16 MiB by default), a
// timeline a history of the WAL, forked from another at a promotion, and a resource manager the part of PostgreSQL
// that wrote a record.
package xlog
