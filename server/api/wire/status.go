package wire

import "time"

// Status is a summary of the account.
type Status struct {
	Organization    Organization     `json:"organization"`
	Projects        []Project        `json:"projects"`
	Key             KeyPower         `json:"key"`
	Databases       []Database       `json:"databases"`
	Backups         BackupHealth     `json:"backups"`
	Storage         Storage          `json:"storage"`
	Usage           Usage            `json:"usage"`
	Operations      []Operation      `json:"operations"`
	Recommendations []Recommendation `json:"recommendations" doc:"The most severe, at most 5."`
	Server          Server           `json:"server"`
}

// Organization is an organization's record.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Project is a project's record.
type Project struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// KeyPower is what the request's key may do.
type KeyPower struct {
	Scopes         []string   `json:"scopes"`
	AllowDangerous bool       `json:"allow_dangerous"`
	ExpiresAt      *time.Time `json:"expires_at"`
}

// BackupHealth summarizes how well backups protect the databases.
type BackupHealth struct {
	NewestCompletedAt *time.Time       `json:"newest_completed_at"`
	NewestVerifiedAt  *time.Time       `json:"newest_verified_at"`
	Unprotected       []NamedReference `json:"unprotected" doc:"Databases that are to have a completed backup and have none."`
}

// NamedReference names a resource.
type NamedReference struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Storage is the total of all buckets.
type Storage struct {
	Buckets   int64 `json:"buckets"`
	Objects   int64 `json:"objects"`
	SizeBytes int64 `json:"size_bytes"`
}

// Server describes the appliance itself.
type Server struct {
	Version                  string    `json:"version"`
	Time                     time.Time `json:"time"`
	PostgresVersion          *string   `json:"postgres_version" doc:"Of new databases; null if there is no PostgreSQL."`
	PostgresOrigin           *string   `json:"postgres_origin" doc:"Where that PostgreSQL came from: flag, installed, bundled or downloaded."`
	DataDirectory            string    `json:"data_directory"`
	TrashRetentionSeconds    int64     `json:"trash_retention_seconds" doc:"How long deleted databases are kept."`
	ReplacedRetentionSeconds int64     `json:"replaced_retention_seconds" doc:"How long the data that a restore replaced is kept."`
}
