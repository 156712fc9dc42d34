package wire

import "time"

// DatabaseLog is the newest part of a server's log, oldest line first.
type DatabaseLog struct {
	Lines  []LogLine `json:"lines" doc:"They may hold parts of the data."`
	Cursor string    `json:"cursor" doc:"Where the answer ends: with after, the next one goes on from there."`
}

// LogLine is a line of a server's log.
type LogLine struct {
	At    *time.Time `json:"at" doc:"null if the line continues the one before."`
	Level *string    `json:"level" doc:"Such as LOG, ERROR or STATEMENT; null if the line continues the one before." example:"ERROR"`
	Text  string     `json:"text" doc:"The whole line."`
}

// Metrics are a database's activity over time.
type Metrics struct {
	Range       MetricsRange    `json:"range"`
	StepSeconds int64           `json:"step_seconds" doc:"The length of a sample's interval."`
	Samples     []MetricsSample `json:"samples" doc:"Oldest first; the last one is incomplete. There are none for times when the database or the appliance was down."`
}

// MetricsSample is a database's activity in one interval.
type MetricsSample struct {
	At               time.Time `json:"at" doc:"The start of the interval."`
	SizeBytes        int64     `json:"size_bytes" doc:"At its end."`
	Connections      int       `json:"connections" doc:"The most at any time."`
	CommitsPerSecond float64   `json:"commits_per_second" doc:"On average."`
	WALLagBytes      *int64    `json:"wal_lag_bytes" doc:"The most WAL that was not archived yet; null if nothing received it."`
	RPOSeconds       *float64  `json:"rpo_seconds" doc:"The age of the commits that would have been lost, at worst."`
}

// MetricsRange is how far back metrics go, and in which steps.
type MetricsRange string

const (
	MetricsDay   MetricsRange = "day"   // five minutes a step
	MetricsMonth MetricsRange = "month" // an hour a step
)

// LogLevel is the level of an entry of a server's log.
type LogLevel string

const (
	LogLog       LogLevel = "LOG"
	LogWarning   LogLevel = "WARNING"
	LogError     LogLevel = "ERROR"
	LogFatal     LogLevel = "FATAL"
	LogPanic     LogLevel = "PANIC"
	LogStatement LogLevel = "STATEMENT"
	LogDetail    LogLevel = "DETAIL"
	LogHint      LogLevel = "HINT"
	LogContext   LogLevel = "CONTEXT"
)
