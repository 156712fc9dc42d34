package wire

// CreateProject is a request to create a project.
type CreateProject struct {
	Name string `json:"name" doc:"1 to 63 letters, digits, spaces, dots, underscores or hyphens. Unique in the organization."`
}

// UpdateProject is a request to change a project.
type UpdateProject struct {
	Name string `json:"name" doc:"As for a new project."`
}

// DeletedRecord is the result of deleting what cannot be restored.
type DeletedRecord struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}
