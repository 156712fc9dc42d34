package wire

import "time"

// RoleAccess is what a role of a database may do.
type RoleAccess string

const (
	AccessRead   RoleAccess = "read"
	AccessWrite  RoleAccess = "write"
	AccessOwner  RoleAccess = "owner"
	AccessCreate RoleAccess = "create"
)

// DatabaseRole is a role of a database besides its owner and its read-only role.
type DatabaseRole struct {
	Name            string     `json:"name"`
	Access          RoleAccess `json:"access"`
	ConnectionLimit *int       `json:"connection_limit" doc:"How many sessions it may have at a time; null for as many as the owner may have."`
	PasswordSetAt   *time.Time `json:"password_set_at" doc:"When it got its present password; null when it has none, as in a copy of another database, and nobody can log in as it."`
	CreatedAt       time.Time  `json:"created_at"`
	UpdatedAt       time.Time  `json:"updated_at"`
}

// DatabaseRoleList has the roles of a database, by name.
type DatabaseRoleList struct {
	Roles []DatabaseRole `json:"roles"`
}

// DatabaseRoleSecret is a role with its new password.
type DatabaseRoleSecret struct {
	DatabaseRole
	Connection         Connection `json:"connection" doc:"How a client logs in as the role. The password is shown only in this response. A role with access create is shown a database of its own, which is made with it."`
	SessionsTerminated int        `json:"sessions_terminated" doc:"Open sessions of the role that this request ended."`
}

// CreateDatabaseRole is a request to create a role.
type CreateDatabaseRole struct {
	Name            string       `json:"name" doc:"Lower-case letters, digits and underscores, unlike the database's other roles." example:"reports"`
	Access          RoleAccess   `json:"access"`
	ConnectionLimit *WholeNumber `json:"connection_limit,omitzero" required:"false" minimum:"1" maximum:"262143" doc:"How many sessions it may have at a time, of those that the server has; as many as the owner when left out." example:"5"`
}

// UpdateDatabaseRole is a request to change a role.
type UpdateDatabaseRole struct {
	Access          *RoleAccess             `json:"access,omitzero" required:"false" doc:"Unchanged when left out. A change ends the role's sessions."`
	ConnectionLimit Resettable[WholeNumber] `json:"connection_limit,omitzero" required:"false" minimum:"1" maximum:"262143" doc:"How many sessions it may have at a time, null for as many as the owner; unchanged when left out."`
}

// DeletedDatabaseRole is the result of deleting a role.
type DeletedDatabaseRole struct {
	Name               string `json:"name"`
	Deleted            bool   `json:"deleted"`
	SessionsTerminated int    `json:"sessions_terminated" doc:"Open sessions of the role that this request ended."`

	DatabaseDropped *string `json:"database_dropped" doc:"The database that was made for the role and is dropped, because nothing was in it and nobody else used it; null if there is none."`
	DatabaseKept    *string `json:"database_kept" doc:"The database that was made for the role and stays, like others that it made: every role with access create can use and drop it; null if there is none."`
}
