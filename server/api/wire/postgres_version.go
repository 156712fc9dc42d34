package wire

// PostgresVersionList has the major versions of PostgreSQL that databases can have, the newest first.
type PostgresVersionList struct {
	Versions []PostgresVersion `json:"versions"`
}

// PostgresVersion is a major version of PostgreSQL.
type PostgresVersion struct {
	Major     string   `json:"major" doc:"What a creation or an upgrade asks for." example:"18"`
	Version   string   `json:"version" doc:"The one that databases run on from their next start." example:"18.4"`
	Origin    string   `json:"origin" doc:"Where it comes from: installed on the machine, flag (chosen by the operator), bundled with the appliance, or downloaded." example:"installed"`
	Installed bool     `json:"installed" doc:"Whether this machine has it. One that it does not have is fetched when it is first needed."`
	Default   bool     `json:"default" doc:"Whether a creation that asks for none gets it."`
	Lacks     []string `json:"lacks" doc:"What is missing: pg_dump (exports), pg_upgrade (upgrades to it), contrib (most extensions)."`
}
