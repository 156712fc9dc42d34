// Package binaries finds the programs of PostgreSQL: installed ones, the ones built
// into a bundled holdfast, or a download, which it keeps in a cache. It also packs the
// bundle. It is the only importer of embedded-postgres, and knows nothing of instances.
//
// Invariants: a [Set] was executed before it is returned; a cache holds only complete
// directories, because each is made beside its final name and renamed; programs get an
// environment of their own ([Set.Env]).
//
// PostgreSQL 15 and newer are supported.
package binaries
