package model

import (
	"regexp"
	"time"
)

// DefaultName names the organization and the project that the first start makes.
const DefaultName = "default"

// Organization owns projects, people and keys. Organizations are isolated from
// each other.
type Organization struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	// Plan names the plan, "" for PlanSelfHosted. Trial is the latest trial since the
	// plan was set, nil if there was none.
	Plan  string `json:"plan"`
	Trial *Trial `json:"trial"`
}

// Project groups an organization's databases and buckets.
type Project struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	CreatedAt    time.Time `json:"created_at"`
}

// MaxProjects is how many projects an organization can have.
const MaxProjects = 1000

// Tag identifies the state of the project.
func (p Project) Tag() string { return Tag(p) }

// LabelPattern is the form of the names that ValidateLabel checks.
const LabelPattern = `^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,61}[A-Za-z0-9._-])?$`

var label = regexp.MustCompile(LabelPattern)

// ValidateLabel checks the name of an organization, project or key, given in the
// input named field: 1 to 63 letters, digits, spaces, dots, underscores and
// hyphens, beginning with a letter or digit and not ending with an invisible
// space.
func ValidateLabel(field, name string) error {
	if !label.MatchString(name) {
		return Invalid(field, "must be 1 to 63 letters, digits, spaces, dots, underscores or hyphens, beginning with a letter or digit and not ending with a space")
	}
	return nil
}
