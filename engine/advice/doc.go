// Package advice contains the checks that produce recommendations.
//
// A check is a file with one function, and an entry in a table. The checks of
// accountChecks use facts that the appliance has in memory and run on request. The
// checks of DatabaseChecks query a tenant's database and run in the background. They
// run as the superuser in a database where a tenant may have created functions,
// operators and casts. They therefore read only catalogs and statistics, call only
// functions of pg_catalog (the session's whole search path), and read no tenant's
// rows. They take no lock on a tenant's table: sizes come from pg_class, not from
// pg_relation_size.
package advice
