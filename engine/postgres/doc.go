// Package postgres runs one PostgreSQL instance: it finds the binaries, makes
// and configures a data directory, issues its certificate, keeps its process
// running as a supervised child of this one, and sets up the roles a tenant
// logs in with. It is the only importer of embedded-postgres, and knows
// nothing of organizations, HTTP or the metadata store.
//
// Words:
//
//   - an instance is one data directory and the postmaster that serves it;
//   - the superuser is the role [Superuser], which logs in over the private
//     Unix socket alone, by peer authentication;
//   - a tenant is the pair of roles (owner, read-only) that log in over TCP,
//     with SCRAM, to the one database of the instance;
//   - the warm pool holds prepared data directories that become instances.
//
// Invariants: a clear password never leaves the process (only SCRAM verifiers
// do); every file PostgreSQL reads is published by package durable in one step; a
// process is signalled only once it is known to be of the data directory in
// question; what the superuser runs resolves names in pg_catalog alone.
//
// Supported are PostgreSQL 15 and newer.
package postgres
