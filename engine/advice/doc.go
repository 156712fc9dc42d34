// Package advice is the checks that recommendations come from.
//
// A check is a file with one function and a row of a table. Those of
// accountChecks go by facts the appliance has in memory and are made whenever
// somebody asks. Those of DatabaseChecks ask a tenant's database and are made
// in the background. They run as the superuser in a place where a tenant may
// have made functions, operators and casts of his own; so they read catalogs
// and statistics only, call nothing that is not of pg_catalog (the session's
// search path is that alone), and touch no row of a tenant's. They take no lock
// on a tenant's table: sizes come from pg_class, not from pg_relation_size.
package advice
