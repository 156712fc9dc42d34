package wire

import "time"

// User is a person who can sign in to the console.
type User struct {
	ID           string     `json:"id"`
	Email        string     `json:"email"`
	Role         UserRole   `json:"role"`
	HasPassword  bool       `json:"has_password" doc:"False until the person has used the setup link."`
	CreatedAt    time.Time  `json:"created_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
}

// InviteUser is a request to create the account of a person.
type InviteUser struct {
	Email string   `json:"email" doc:"Unique on the appliance."`
	Role  UserRole `json:"role" doc:"A key invites viewers only, and holds every scope of the preset read_only itself."`
}

// InvitedUser is a new account.
type InvitedUser struct {
	User      User      `json:"user"`
	SetupLink SetupLink `json:"setup_link"`
}

// SetupLink is a link with which a person sets a password.
type SetupLink struct {
	URL       string    `json:"url" doc:"Works once. Treat it like a password."`
	ExpiresAt time.Time `json:"expires_at"`
}

// UpdateUser is a request to change an account.
type UpdateUser struct {
	Role UserRole `json:"role" doc:"A key gives the role viewer only, and only to viewers."`
}

// UserSession is the sign-in of a person in one browser.
type UserSession struct {
	ID         string    `json:"id"`
	UserID     string    `json:"user_id"`
	Email      string    `json:"email" doc:"The person's."`
	IP         string    `json:"ip" doc:"The address of the sign-in."`
	UserAgent  string    `json:"user_agent"`
	CreatedAt  time.Time `json:"created_at"`
	LastSeenAt time.Time `json:"last_seen_at"`
	ExpiresAt  time.Time `json:"expires_at" doc:"When it ends if it is not used before."`
}

// EndedSessions is the result of signing a person out.
type EndedSessions struct {
	UserID string `json:"user_id"`
	Ended  int    `json:"ended" doc:"How many sessions there were."`
}
