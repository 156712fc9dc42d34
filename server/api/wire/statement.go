package wire

import "time"

// StatementOrder is what statements are sorted by, the largest first.
type StatementOrder string

// The orders of statements.
const (
	ByTotalTime StatementOrder = "total_time"
	ByMeanTime  StatementOrder = "mean_time"
	ByCalls     StatementOrder = "calls"
	ByRows      StatementOrder = "rows"
)

// StatementList has the statements of a database that took most.
type StatementList struct {
	Enabled    bool        `json:"enabled" doc:"Whether the server counts statements (pg_stat_statements)."`
	Enable     *string     `json:"enable" doc:"Where it does not: what to do."`
	Since      *time.Time  `json:"since" doc:"Since when it counts. A reset of this database's statements does not change it."`
	Statements []Statement `json:"statements" maxItems:"200"`
}

// Statement is a statement as PostgreSQL counts it: with $1, $2, … in place of constants.
type Statement struct {
	ID               string   `json:"id" doc:"PostgreSQL's queryid, a number of 64 bits." example:"-5816372838273653645"`
	Text             string   `json:"text" doc:"Its first 2000 characters. Constants are replaced; only queries and row changes are listed, because the text of others, such as CREATE ROLE, is kept as it was sent. Rarely, when the server forgets a statement while it runs, the text has its constants."`
	Truncated        bool     `json:"truncated"`
	User             string   `json:"user"`
	Calls            int64    `json:"calls"`
	TotalMS          float64  `json:"total_ms" doc:"Time of all calls, in milliseconds."`
	MeanMS           float64  `json:"mean_ms"`
	MaxMS            float64  `json:"max_ms"`
	Rows             int64    `json:"rows" doc:"Rows returned or changed, by all calls."`
	HitRatio         *float64 `json:"hit_ratio" doc:"Which part of the pages it found in shared buffers, from 0 to 1; null if it read none."`
	TempWrittenBytes int64    `json:"temp_written_bytes" doc:"Temporary files of sorts and hashes that did not fit work_mem."`
}

// ResetStatements is the result of a reset.
type ResetStatements struct {
	Forgotten int `json:"forgotten" doc:"Of how many statements the counters were forgotten."`
}

// ExplainStatement asks for the plan of a statement. One of its fields is set.
type ExplainStatement struct {
	Statement   *string `json:"statement,omitzero" required:"false" minLength:"1" maxLength:"65536" doc:"One statement, of at most 64 KiB. It may have parameters: $1, $2, …" example:"select * from orders where id = $1"`
	StatementID *string `json:"statement_id,omitzero" required:"false" pattern:"^-?[0-9]{1,19}$" patternDescription:"the id of a statement, from the list of statements" doc:"Id of a statement from the list instead."`
}

// StatementPlan is a plan.
type StatementPlan struct {
	Statement string `json:"statement"`
	Plan      string `json:"plan" doc:"As EXPLAIN shows it, in lines: with estimates, for any values of the parameters."`
}

// LockList has the sessions that wait for locks and those they wait for, in the order of a tree.
type LockList struct {
	Locks []LockedSession `json:"locks" maxItems:"1000"`
}

// LockedSession is a session that waits for others or that others wait for. Those that wait for it follow, with a greater depth.
type LockedSession struct {
	Session   DatabaseSession `json:"session"`
	Depth     int             `json:"depth" doc:"0 for a session that waits for no other user's."`
	BlockedBy []string        `json:"blocked_by" doc:"Ids of the sessions that it waits for. They can be cancelled and terminated."`
	Others    int             `json:"others" doc:"How many other processes it waits for: a vacuum, a prepared transaction."`
	Mode      *string         `json:"mode" doc:"The lock that it waits for, null for none." example:"AccessExclusiveLock"`
	Kind      *string         `json:"kind" doc:"What the lock is on." example:"relation"`
	Relation  *string         `json:"relation" doc:"The table or index, if it is on one." example:"public.orders"`
}

// RelationList has the largest tables and indexes of a database, the largest first.
type RelationList struct {
	Tables  []TableSize `json:"tables" maxItems:"200"`
	Indexes []IndexSize `json:"indexes" maxItems:"200"`
}

// TableSize is a table's size on disk.
type TableSize struct {
	Schema          string     `json:"schema"`
	Name            string     `json:"name"`
	EstimatedRows   *int64     `json:"estimated_rows" doc:"null before the first ANALYZE."`
	TotalBytes      int64      `json:"total_bytes"`
	TableBytes      int64      `json:"table_bytes" doc:"Without indexes and TOAST."`
	TOASTBytes      int64      `json:"toast_bytes"`
	IndexBytes      int64      `json:"index_bytes"`
	BloatBytes      *int64     `json:"bloat_bytes" doc:"An estimate of how much of table_bytes holds no rows, from the widths that ANALYZE has seen. null without them."`
	DeadRows        int64      `json:"dead_rows" doc:"Rows that the next vacuum removes."`
	LastVacuumAt    *time.Time `json:"last_vacuum_at"`
	LastAnalyzeAt   *time.Time `json:"last_analyze_at"`
	SequentialScans int64      `json:"sequential_scans"`
	IndexScans      int64      `json:"index_scans"`
}

// IndexSize is an index and its size on disk.
type IndexSize struct {
	Schema     string `json:"schema"`
	Table      string `json:"table"`
	Name       string `json:"name"`
	SizeBytes  int64  `json:"size_bytes"`
	BloatBytes *int64 `json:"bloat_bytes" doc:"An estimate of how much of size_bytes holds no rows, beyond what the fill factor leaves free. null for other kinds than B-tree, and before ANALYZE has seen every column."`
	Scans      int64  `json:"scans" doc:"How many used it since statistics began."`
	Unique     bool   `json:"unique"`
	Valid      bool   `json:"valid" doc:"false for what a failed CREATE INDEX CONCURRENTLY left."`
	Unused     bool   `json:"unused" doc:"No query has used it since statistics began, which a crash also begins, and it has no other purpose: it is not unique and supports no foreign key."`
}
