package wire

import "time"

// DatabaseSessions are the open sessions of a database's users, the oldest first.
type DatabaseSessions struct {
	Sessions []DatabaseSession `json:"sessions" maxItems:"1000"`
}

// DatabaseSession is an open session of one of a database's users.
type DatabaseSession struct {
	ID               string     `json:"id" doc:"The process and when it began: no other session ever has it." example:"4711-1763900000000000"`
	PID              int        `json:"pid" doc:"The process in PostgreSQL."`
	User             string     `json:"user"`
	Database         string     `json:"database" doc:"The database in PostgreSQL: this one, or one that a role has created beside it."`
	Application      *string    `json:"application" doc:"application_name, which the client chooses."`
	ClientAddress    *string    `json:"client_address"`
	State            *string    `json:"state" doc:"As PostgreSQL calls it: active, idle, idle in transaction and others."`
	StartedAt        time.Time  `json:"started_at"`
	StateSince       *time.Time `json:"state_since"`
	TransactionSince *time.Time `json:"transaction_since" doc:"null outside a transaction."`
	WaitType         *string    `json:"wait_type" doc:"The kind of what it waits for, such as Lock or Client; null for nothing."`
	Wait             *string    `json:"wait" doc:"What it waits for, such as transactionid or ClientRead; null for nothing."`
	Query            *string    `json:"query" doc:"The first 2000 characters of its statement, or of the last one if it is idle. null for a key without the scope database:update, because statements may hold secrets, and for one in a database of another encoding."`
}

// SignalledSession is the result of cancelling or terminating a session.
type SignalledSession struct {
	ID    string `json:"id"`
	Ended bool   `json:"ended" doc:"Whether the session has ended. A cancelled one goes on without its statement; a terminated one that is not ended yet will be, once it can be interrupted."`
}
