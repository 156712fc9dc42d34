// Package importer copies a PostgreSQL database from another server into a new one.
//
// The source is untrusted: it may send anything, and its contents may be made to attack whoever restores them. So
//
//   - the importer dials only addresses that [Source] allows, and checks them after
//     name resolution, at every connection;
//   - the source sees one snapshot, READ ONLY transactions, and no lock above
//     ACCESS SHARE, except a brief ROW EXCLUSIVE on sequences;
//   - no code of the source's users runs there: no planned query names anything
//     that a user of the source could have replaced;
//   - the target executes everything from the source as the role that will own the
//     new database, with no more privileges, through the wire protocol, never psql;
//   - the importer decides how much memory is used: every answer of a server is
//     bounded in bytes, rows and time (guard.go);
//   - the source's password stays in this process: pg_dump talks to a private
//     socket that leads to an authenticated session (relay.go).
//
// Terms: the *inventory* is what the source contains (tables, sequences, large objects). The *archive* is pg_dump's
// description of the schema, a list of *entries*. A *step* is an entry or the copy of a table, with the steps that it
// needs. A *flaw* is something that was not copied.
//
// DESIGN.md gives the reasons.
package importer
