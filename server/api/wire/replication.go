package wire

// Replication is the state of a database's logical replication.
type Replication struct {
	Enabled        bool              `json:"enabled"`
	SlotLimitBytes *int64            `json:"slot_limit_bytes" doc:"How much WAL a slot retains at most; it is lost beyond that. null while replication is off."`
	Slots          []ReplicationSlot `json:"slots"`
	Publications   []Publication     `json:"publications" maxItems:"200"`
	Connection     *ReplicationLogin `json:"connection" doc:"null while replication is off, and for a key without the scope database:update."`
}

// ReplicationLogin is how a client that follows the database connects.
type ReplicationLogin struct {
	Host          string  `json:"host"`
	Port          int     `json:"port"`
	Database      string  `json:"database"`
	User          string  `json:"user"`
	Password      string  `json:"password" format:"password"`
	SSLMode       SSLMode `json:"ssl_mode"`
	ConnectionURL string  `json:"connection_url"`
	Conninfo      string  `json:"conninfo" doc:"For CREATE SUBSCRIPTION … CONNECTION."`
	CACertificate string  `json:"ca_certificate"`
}

// ReplicationSlot is what a client has read of a database's changes.
type ReplicationSlot struct {
	Name          string  `json:"name"`
	Plugin        *string `json:"plugin" doc:"null for a physical slot." example:"pgoutput"`
	Temporary     bool    `json:"temporary"`
	Active        bool    `json:"active" doc:"Whether a client reads it now."`
	LagBytes      int64   `json:"lag_bytes" doc:"WAL that the client has not confirmed."`
	RetainedBytes int64   `json:"retained_bytes" doc:"WAL that the server keeps for it."`
	WALStatus     string  `json:"wal_status" doc:"As PostgreSQL calls it: reserved, extended, unreserved or lost."`
	SafeWALBytes  *int64  `json:"safe_wal_bytes" doc:"How much more WAL can be written until it is lost; null once it is."`
}

// Publication is what a database publishes.
type Publication struct {
	Name            string   `json:"name"`
	Owner           string   `json:"owner"`
	AllTables       bool     `json:"all_tables"`
	Tables          int      `json:"tables"`
	WithoutIdentity []string `json:"without_identity" doc:"Tables without a primary key or a replica identity, at most 100: their updates and deletes fail."`
}

// DroppedSlot is the result of dropping a replication slot.
type DroppedSlot struct {
	Name    string `json:"name"`
	Dropped bool   `json:"dropped"`
}
