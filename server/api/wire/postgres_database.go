package wire

// PostgresDatabaseList has the databases of PostgreSQL in a database's server: the main one first, then those beside it, by name.
type PostgresDatabaseList struct {
	Databases []PostgresDatabase `json:"databases" maxItems:"200"`
}

// PostgresDatabase is a database of PostgreSQL: the main one, or one that roles with access create have made beside it.
type PostgresDatabase struct {
	Name             string `json:"name" doc:"For dbname. One that is not UTF-8 has U+FFFD in the place of each byte sequence that is not; no request can name it."`
	Main             bool   `json:"main" doc:"Whether it is the one that connection_url leads to."`
	SizeBytes        int64  `json:"size_bytes"`
	Encoding         string `json:"encoding" example:"UTF8"`
	AllowConnections bool   `json:"allow_connections" doc:"false after ALTER DATABASE … ALLOW_CONNECTIONS false: then nobody can connect to it, and it can be neither inspected nor exported."`
}
