package wire

import "time"

// UpgradeDatabase is a request to upgrade a database to a newer major version of
// PostgreSQL.
type UpgradeDatabase struct {
	Version string `json:"version" pattern:"^[1-9][0-9]{1,2}$" patternDescription:"a major version such as 18" doc:"The major version of PostgreSQL, newer than the database's: one of GET /versions that does not lack pg_upgrade." example:"18"`
	DryRun  *bool  `json:"dry_run,omitzero" required:"false" doc:"Whether to upgrade a copy only, which is restored from the newest backup, and to remove it again; false when left out."`
}

// Upgrade is what an upgrade of a database does, or its dry run.
type Upgrade struct {
	FromVersion          string            `json:"from_version" example:"15.18"`
	Version              string            `json:"version" example:"18.4"`
	EstimatedDownSeconds *float64          `json:"estimated_down_seconds" doc:"About how long the database is to be down, from upgrades and dry runs on this machine; null without a comparable measurement."`
	StoppedAt            *time.Time        `json:"stopped_at" doc:"When the database was stopped; null before, and for a dry run."`
	DownSeconds          *float64          `json:"down_seconds" doc:"How long the database was down; of a dry run, about how long an upgrade will take it down. null until the end."`
	NeededBytes          *int64            `json:"needed_bytes" doc:"The size of the data, which the disk must have room for a second time; null until that is known."`
	ExtensionUpdates     []ExtensionUpdate `json:"extension_updates" doc:"Extensions of which the machine has a newer version than the database; POST /databases/{id}/extensions updates them."`
	Notes                []string          `json:"notes" doc:"What is not as it was before."`
}

// ExtensionUpdate is a newer version of an extension.
type ExtensionUpdate struct {
	Name             string `json:"name"`
	InstalledVersion string `json:"installed_version"`
	Version          string `json:"version"`
}
