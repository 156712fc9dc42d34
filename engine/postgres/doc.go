// Package postgres runs one PostgreSQL instance: it creates and configures a data directory,
// supervises its process as a child, and sets up the roles a tenant logs in with. Package binaries
// finds the programs. It has no knowledge of organizations, HTTP or the metadata store.
//
// Words:
//
//   - an instance is one data directory and the postmaster that serves it;
//   - the superuser is the role [Superuser], which logs in only over the private
//     Unix socket, by peer authentication;
//   - a tenant is the pair of roles (owner, read-only) that log in over TCP,
//     with SCRAM, to the one database of the instance;
//   - the warm pool holds prepared data directories that become instances.
//
// Invariants: a clear-text password never leaves the process (only SCRAM verifiers do); package
// durable publishes every file that PostgreSQL reads, in one step; a process is signalled only once
// it is known to belong to the data directory in question; the superuser's statements resolve names
// only in pg_catalog.
package postgres
