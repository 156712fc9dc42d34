package wire

// RLS is the row-level security of every table of a database.
type RLS struct {
	Tables  []RLSTable `json:"tables"`
	Summary RLSSummary `json:"summary"`
}

// RLSTable is a table and its row-level security.
type RLSTable struct {
	Schema        string      `json:"schema"`
	Table         string      `json:"table"`
	Owner         string      `json:"owner"`
	RLSEnabled    bool        `json:"rls_enabled"`
	RLSForced     bool        `json:"rls_forced" doc:"Whether it holds for the table's owner too."`
	EstimatedRows *int64      `json:"estimated_rows" doc:"PostgreSQL's own estimate; null before its first."`
	Policies      []RLSPolicy `json:"policies"`
	Warning       *RLSWarning `json:"warning"`
}

// RLSPolicy is a policy, as pg_policies shows it.
type RLSPolicy struct {
	Name       string     `json:"name"`
	Command    RLSCommand `json:"command"`
	Permissive bool       `json:"permissive"`
	Roles      []string   `json:"roles"`
	Using      *string    `json:"using" doc:"Cut, with … at its end, when it is long."`
	WithCheck  *string    `json:"with_check" doc:"Cut like using."`
}

// RLSSummary counts the tables.
type RLSSummary struct {
	Total         int `json:"total"`
	Enabled       int `json:"enabled"`
	Forced        int `json:"forced"`
	WithoutPolicy int `json:"without_policy" doc:"Tables with row-level security and no policy: nobody but their owner sees a row."`
}

// SetRLS turns the row-level security of one table on or off.
type SetRLS struct {
	Table   string  `json:"table" minLength:"1" maxLength:"63" doc:"Of the main database; the owners of those beside it change theirs by SQL."`
	Schema  *string `json:"schema,omitzero" required:"false" minLength:"1" maxLength:"63" doc:"public when left out."`
	Enabled bool    `json:"enabled"`
	Force   *bool   `json:"force,omitzero" required:"false" doc:"Whether it holds for the table's owner too; as it is when left out."`
}
