package postgres

// extensionSchema is the schema of the tenant's database for extensions that the
// appliance creates. It belongs to [Superuser], and tenants may only use it: the
// scripts of an extension run as the superuser with that schema first on their
// search path, so it must contain nothing of a tenant's.
const extensionSchema = "extensions"

// createHeldSchema returns the statements that create a schema which belongs to
// the superuser and which everyone may use; they fail if it exists. The schema is
// made a member of plpgsql, which every database has and no tenant can change:
// pg_dump leaves out the members of extensions, and only a superuser could
// restore this one.
func createHeldSchema(name string) []string {
	n := quoteName(name)
	return []string{
		"CREATE SCHEMA " + n,
		"GRANT USAGE ON SCHEMA " + n + " TO PUBLIC",
		"ALTER EXTENSION plpgsql ADD SCHEMA " + n,
	}
}
