// Package importer copies a PostgreSQL database from elsewhere into a new one.
//
// The source is a stranger: what it sends may be anything, and what it holds
// may be made to attack whoever restores it. So
//
//   - only addresses that [Source] may be at are dialled, checked after their
//     names are resolved, at every connection;
//   - the source sees one snapshot, in transactions that are READ ONLY, and no
//     lock above ACCESS SHARE, but for a moment ROW EXCLUSIVE on sequences;
//   - no code of the source's users runs there: no query that is planned names
//     what a user of the source could have replaced;
//   - everything it says is executed in the target as the role that will own
//     the new database, never as more, by the wire protocol and never by psql;
//   - how much memory is taken is decided here: what a server answers is bounded
//     in bytes, rows and time (guard.go);
//   - its password stays in this process: pg_dump talks to a private socket
//     behind which a session is logged in already (relay.go).
//
// The words: the *inventory* is what the source has (tables, sequences, large
// objects). The *archive* is pg_dump's account of the schema, a list of
// *entries*. A *step* is an entry or the copy of a table, with what must be done
// before. A *flaw* is something that did not come over.
//
// DESIGN.md has the reasons.
package importer
