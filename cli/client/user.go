package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// UserOptions select people; an empty field selects all. Filter.Project and Filter.Name are not used.
type UserOptions struct {
	ListOptions
	Filter
	Email string
	Role  wire.UserRole
}

// ListUsers returns a page of the people who can sign in to the console.
func (c *Client) ListUsers(ctx context.Context, o UserOptions) (Page[wire.User], error) {
	return list[wire.User](ctx, c, "/users", setTexts(o.add(o.query()), map[string]string{"email": o.Email, "role": string(o.Role)}))
}

// Users iterates over the people that o selects.
func (c *Client) Users(ctx context.Context, o UserOptions) iter.Seq2[wire.User, error] {
	return all(ctx, o, func(o *UserOptions) *ListOptions { return &o.ListOptions }, c.ListUsers)
}

// InviteUser creates the account of a person, and the link with which the person sets a password.
func (c *Client) InviteUser(ctx context.Context, in wire.InviteUser) (wire.InvitedUser, error) {
	return one[wire.InvitedUser](ctx, c, "POST", "/users", in)
}

// GetUser returns a person's account.
func (c *Client) GetUser(ctx context.Context, id string) (wire.User, error) {
	return one[wire.User](ctx, c, "GET", path("users", id), nil)
}

// UpdateUser gives a person another role.
func (c *Client) UpdateUser(ctx context.Context, id string, in wire.UpdateUser) (wire.User, error) {
	return one[wire.User](ctx, c, "PATCH", path("users", id), in)
}

// DeleteUser removes a person's account.
func (c *Client) DeleteUser(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("users", id), nil)
}

// CreateSetupLink makes a link with which a person sets a new password.
func (c *Client) CreateSetupLink(ctx context.Context, id string) (wire.SetupLink, error) {
	return one[wire.SetupLink](ctx, c, "POST", path("users", id, "setup-link"), nil)
}

// UserSessionOptions select people's sessions; an empty field selects all. Sessions have
// no project and no name.
type UserSessionOptions struct {
	ListOptions
	Filter
	UserID string
}

// ListUserSessions returns a page of the people's sessions.
func (c *Client) ListUserSessions(ctx context.Context, o UserSessionOptions) (Page[wire.UserSession], error) {
	return list[wire.UserSession](ctx, c, "/sessions", setTexts(o.add(o.query()), map[string]string{"user_id": o.UserID}))
}

// UserSessions iterates over the sessions that o selects.
func (c *Client) UserSessions(ctx context.Context, o UserSessionOptions) iter.Seq2[wire.UserSession, error] {
	return all(ctx, o, func(o *UserSessionOptions) *ListOptions { return &o.ListOptions }, c.ListUserSessions)
}

// EndUserSession ends one session.
func (c *Client) EndUserSession(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("sessions", id), nil)
}

// EndUserSessions ends every session of a person.
func (c *Client) EndUserSessions(ctx context.Context, user string) (wire.EndedSessions, error) {
	return one[wire.EndedSessions](ctx, c, "DELETE", path("users", user, "sessions"), nil)
}
