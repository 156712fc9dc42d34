package wire

// SettingList has the settings of a database that can be changed.
type SettingList struct {
	Settings []Setting `json:"settings"`
}

// Setting is a setting of PostgreSQL.
type Setting struct {
	Name         string        `json:"name"`
	Area         string        `json:"area" doc:"The group in which people look for it."`
	Description  string        `json:"description"`
	Kind         SettingKind   `json:"kind"`
	Unit         *string       `json:"unit" doc:"That of a number without one; null for kinds without units."`
	Minimum      *string       `json:"minimum" doc:"Null for kinds that are no numbers."`
	Maximum      *string       `json:"maximum" doc:"Null for kinds that are no numbers."`
	Off          *string       `json:"off" doc:"A value beside these bounds that switches it off; null when there is none."`
	Choices      []string      `json:"choices" doc:"The values of a choice."`
	Default      string        `json:"default" doc:"What a reset restores."`
	Value        string        `json:"value" doc:"What new sessions get, unless their role or a statement of the owner says otherwise."`
	Source       SettingSource `json:"source"`
	NeedsRestart bool          `json:"needs_restart" doc:"Whether only a restart changes it."`
	PendingValue *string       `json:"pending_value" doc:"What the next restart brings; null when that is the value."`
}

// UpdateSettings changes settings of a database.
type UpdateSettings struct {
	Settings map[string]*string `json:"settings" minProperties:"1" doc:"Values by name; null restores the default. What is left out stays."`
	Restart  *bool              `json:"restart,omitzero" required:"false" doc:"Allow the restart that needs_restart announces; it ends the sessions. Without it such a setting waits for the next restart."`
}
