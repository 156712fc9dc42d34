package extensions

import (
	"slices"
	"sync"
)

// Catalogue returns all entries, in the order of their classes.
func Catalogue() []Extension {
	return slices.Concat(trusted(), byAppliance(), preloaded(), forbidden())
}

// byName has the entries of the catalogue by their names.
var byName = sync.OnceValue(func() map[string]Extension {
	entries := map[string]Extension{}
	for _, x := range Catalogue() {
		entries[x.Name] = x
	}
	return entries
})

// trusted lists the extensions that PostgreSQL lets the owner of a database
// create.
func trusted() []Extension {
	return []Extension{
		{Name: "btree_gin", Class: ClassSelf, Notes: "GIN indexes on ordinary types"},
		{Name: "btree_gist", Class: ClassSelf, Notes: "GiST indexes on ordinary types, for exclusion constraints"},
		{Name: "citext", Class: ClassSelf, Notes: "text that ignores case"},
		{Name: "cube", Class: ClassSelf, Notes: "cubes in several dimensions"},
		{Name: "dict_int", Class: ClassSelf, Notes: "text search: integers"},
		{Name: "fuzzystrmatch", Class: ClassSelf, Notes: "similar sounds and spellings"},
		{Name: "hstore", Class: ClassSelf, Notes: "keys and values in one column"},
		{Name: "intarray", Class: ClassSelf, Notes: "functions and indexes for arrays of integers"},
		{Name: "isn", Class: ClassSelf, Notes: "ISBN, ISSN, EAN"},
		{Name: "lo", Class: ClassSelf, Notes: "large objects that follow their rows"},
		{Name: "ltree", Class: ClassSelf, Notes: "labels in a tree"},
		{Name: "pg_trgm", Class: ClassSelf, Notes: "similar text, and indexes for LIKE"},
		{Name: "pgcrypto", Class: ClassSelf, Notes: "hashes and encryption"},
		{Name: "seg", Class: ClassSelf, Notes: "intervals of numbers"},
		{Name: "tablefunc", Class: ClassSelf, Notes: "crosstab, connectby"},
		{Name: "tcn", Class: ClassSelf, Notes: "notifications of changed rows"},
		{Name: "tsm_system_rows", Class: ClassSelf, Notes: "TABLESAMPLE by a number of rows"},
		{Name: "tsm_system_time", Class: ClassSelf, Notes: "TABLESAMPLE by a time"},
		{Name: "unaccent", Class: ClassSelf, Notes: "text search without accents"},
		{Name: "uuid-ossp", Class: ClassSelf, Notes: "UUIDs; gen_random_uuid() needs no extension"},
	}
}

// byAppliance lists the extensions whose scripts need a superuser, and which give
// their users nothing that a tenant may not have.
func byAppliance() []Extension {
	return []Extension{
		{Name: "vector", Class: ClassAppliance, Package: "pgvector", Notes: "vectors and their nearest neighbours"},
		{
			Name: "postgis", Class: ClassAppliance, Package: "postgis-3",
			// They answer about tables that the caller may not read.
			Grants: postgisStatistics(), Revokes: postgisStatistics(),
			Dump: "without rows that were added to spatial_ref_sys", Notes: "geometry and geography",
		},
		{
			Name: "postgis_raster", Class: ClassAppliance, Package: "postgis-3",
			Notes: "rasters; GDAL's drivers and rasters outside of the database stay off, because they read files of the server",
		},
		{Name: "postgis_sfcgal", Class: ClassAppliance, Package: "postgis-3", Notes: "functions for solids"},
		{Name: "address_standardizer", Class: ClassAppliance, Package: "postgis-3", Notes: "parts of postal addresses"},
		{
			Name: "address_standardizer_data_us", Class: ClassAppliance, Package: "postgis-3",
			Grants: []string{"*"}, Notes: "rules for addresses in the USA",
		},
		{
			Name: "hypopg", Class: ClassAppliance, Package: "hypopg",
			Grants: []string{"hypopg_list_indexes", "hypopg_hidden_indexes"}, Notes: "plans with indexes that do not exist",
		},
		{Name: "plpgsql_check", Class: ClassAppliance, Package: "plpgsql-check", Notes: "finds mistakes in PL/pgSQL functions"},
		{
			Name: "pg_partman", Class: ClassAppliance, Schema: "partman", Package: "partman", KeepsRows: true,
			Grants: []string{"*"},
			Dump:   "with the rows of its configuration",
			Fixed:  "its update scripts execute, as the superuser, what its configuration says; drop it and create it again",
			Notes: "partitions by time or number; give create_parent a template table of your own (p_template_table), " +
				"because nobody may make tables in its schema; call run_maintenance from pg_cron",
		},
		{Name: "earthdistance", Class: ClassAppliance, Notes: "distances on the earth"},
		{Name: "bloom", Class: ClassAppliance, Notes: "indexes on many columns"},
		{Name: "moddatetime", Class: ClassAppliance, Notes: "trigger: time of the last change"},
		{Name: "autoinc", Class: ClassAppliance, Notes: "trigger: the next number"},
		{Name: "insert_username", Class: ClassAppliance, Notes: "trigger: who changed the row"},
		{Name: "refint", Class: ClassAppliance, Notes: "trigger: references; foreign keys replace it"},
		{Name: "dict_xsyn", Class: ClassAppliance, Notes: "text search: synonyms, from files that only the operator can add"},
		{Name: "intagg", Class: ClassAppliance, Notes: "old aggregates of integers"},
		{Name: "sslinfo", Class: ClassAppliance, Notes: "the TLS of a session"},
		{Name: "pgrowlocks", Class: ClassAppliance, Grants: []string{"*"}, Notes: "who locks which row"},
		{
			Name: "pgstattuple", Class: ClassAppliance, Notes: "dead rows and free space of tables and indexes",
			Grants: []string{"*"},
		},
		{
			Name: "pg_buffercache", Class: ClassAppliance, Notes: "what is in the shared buffers",
			Grants: []string{"*"},
		},
		{
			Name: "pg_freespacemap", Class: ClassAppliance, Notes: "free space within pages",
			Grants: []string{"*"},
		},
		{
			Name: "pg_prewarm", Class: ClassAppliance, Notes: "loads tables into memory",
			Revokes: []string{"autoprewarm_start_worker", "autoprewarm_dump_now"},
		},
	}
}

// postgisStatistics returns the functions of postgis that read statistics and indexes of any table.
func postgisStatistics() []string {
	return []string{"st_estimatedextent", "_postgis_stats", "_postgis_selectivity", "_postgis_join_selectivity", "_postgis_index_extent"}
}

// preloaded lists the extensions that the server loads at its start.
func preloaded() []Extension {
	return []Extension{
		{
			Name: "pg_stat_statements", Class: ClassPreload, Preload: "pg_stat_statements",
			Notes: "times of statements; the appliance loads it anyway and reads it for its advice, so nobody may reset it",
		},
		{
			Name: "pg_cron", Class: ClassPreload, Preload: "pg_cron", Package: "cron", Makes: []string{"cron"},
			Settings: map[string]string{
				"cron.database_name": "{database}", "cron.use_background_workers": "on", "cron.max_running_jobs": "4",
				"max_worker_processes": "12",
			},
			Dump:  "without the jobs: cron.job",
			Notes: "jobs at times; they run as the role that schedules them; trial restores do not run them",
		},
	}
}

// forbidden lists the extensions that no tenant gets, with the reason.
func forbidden() []Extension {
	const (
		pages     = "it reads or changes the raw pages of every table, whatever their privileges"
		languages = "its functions run as the operating system's user of the server"
	)
	refuse := func(name, why string) Extension { return Extension{Name: name, Class: ClassForbidden, Notes: why} }
	removed := refuse("adminpack", "it writes files of the server")
	removed.Before = 17
	snapshot := refuse("old_snapshot", "it shows the inside of the server and serves no application")
	snapshot.Before = 17
	return []Extension{
		removed, snapshot,
		refuse("dblink", "it connects from within the server, where the appliance's own socket and the ports of the network are in reach"),
		refuse("postgres_fdw", "it connects from within the server, where the appliance's own socket and the ports of the network are in reach"),
		refuse("file_fdw", "it reads files of the server and runs programs"),
		refuse("pageinspect", pages),
		refuse("pg_surgery", pages),
		refuse("pg_visibility", pages),
		refuse("pg_walinspect", "it reads the changes of every role from the write-ahead log"),
		refuse("amcheck", "it reads whole tables whatever their privileges; each backup is checked with it anyway"),
		refuse("pg_repack", "it rewrites tables as a superuser, by names that a tenant chooses"),
		refuse("xml2", "it reads documents by address; PostgreSQL's own xml functions replace it"),
		refuse("pg_tle", "it runs extensions that tenants write, as the superuser"),
		refuse("postgis_topology", "its users must write to a schema that its scripts run in"),
		refuse("postgis_tiger_geocoder", "its data are loaded with programs on the server"),
		refuse("plpython3u", languages),
		refuse("plperlu", languages),
		refuse("pltclu", languages),
	}
}
