package wire

// ExtensionList has what the catalogue, the machine or the database has.
type ExtensionList struct {
	Extensions []Extension `json:"extensions"`
}

// Extension is an extension of PostgreSQL.
type Extension struct {
	Name             string         `json:"name"`
	Class            ExtensionClass `json:"class"`
	AvailableVersion *string        `json:"available_version" doc:"The version that this machine has; null when it has none."`
	InstalledVersion *string        `json:"installed_version" doc:"The version that the database has; null when it has none."`
	UpdateVersion    *string        `json:"update_version" doc:"The version to which the database's can be updated; null when there is none."`
	Schema           string         `json:"schema" doc:"Where it is, or would be."`
	Owner            *string        `json:"owner" doc:"The role that owns it; null when the database does not have it."`
	Requires         []string       `json:"requires" doc:"Extensions that are created with it."`
	Tables           []string       `json:"tables" doc:"Tables of the database that belong to it, 100 at most: they are dropped with it, and so are their rows."`
	NeedsRestart     bool           `json:"needs_restart" doc:"Whether creating it restarts the database, because the server must load its library."`
	Dumps            *string        `json:"dumps" doc:"What dumps and exports contain of it, beside the statement that creates it; null when there is nothing to say."`
	Notes            string         `json:"notes"`
	Unavailable      *string        `json:"unavailable" doc:"Why it cannot be created or updated, and the remedy; null when it can."`
}

// SetExtension creates an extension, or updates it.
type SetExtension struct {
	Name    string `json:"name" minLength:"1" maxLength:"63" example:"vector"`
	Restart *bool  `json:"restart,omitzero" required:"false" doc:"Allow the restart that needs_restart announces; it ends the sessions."`
}

// DeletedExtension confirms that an extension was dropped.
type DeletedExtension struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}
