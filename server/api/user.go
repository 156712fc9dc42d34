package api

import (
	"context"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewUser returns the wire form of a person's account.
func NewUser(u model.User) wire.User {
	return wire.User{
		ID: u.ID, Email: u.Email, Role: wire.UserRole(u.Role), HasPassword: u.PasswordHash != "",
		CreatedAt: utc(u.CreatedAt), LastSignInAt: utcOrAbsent(u.LastSignInAt),
	}
}

func (h *handlers) newSetupLink(link access.SetupLink) wire.SetupLink {
	return wire.SetupLink{URL: h.baseURL + access.SetupPath(link.Token), ExpiresAt: utc(link.ExpiresAt)}
}

type userListInput struct {
	PageInput
	CreatedInput
	Email string        `query:"email" minLength:"1" maxLength:"254" doc:"Only the person with this e-mail address."`
	Role  wire.UserRole `query:"role" doc:"Only those with this role."`
}

func (h *handlers) userList(_ context.Context, call *model.Call, in *userListInput) (core.List[wire.User], error) {
	if in.Email != "" {
		if _, err := model.NormalizeEmail("email", in.Email); err != nil {
			return core.List[wire.User]{}, err
		}
	}
	page, err := h.engine.Access.UserList(call, access.UserFilter{
		Filter: core.Filter{CreatedAfter: in.CreatedAfter, CreatedBefore: in.CreatedBefore}, Email: in.Email, Role: model.Role(in.Role),
	}, in.page())
	return convertList(page, NewUser), err
}

type inviteUserInput struct {
	Body wire.InviteUser
}

func (h *handlers) userInvite(_ context.Context, call *model.Call, in *inviteUserInput) (wire.InvitedUser, error) {
	user, link, err := h.engine.Access.UserInvite(call, in.Body.Email, model.Role(in.Body.Role))
	if err != nil {
		return wire.InvitedUser{}, err
	}
	return wire.InvitedUser{User: NewUser(user), SetupLink: h.newSetupLink(link)}, nil
}

// UserInput names a person.
type UserInput struct {
	UserID string `path:"userId" doc:"Id of the person." example:"user_01k6zv7r9pxa3c5n8m2q4t6w8y"`
}

func (h *handlers) userGet(_ context.Context, call *model.Call, in *UserInput) (wire.User, error) {
	user, err := h.engine.Access.UserGet(call, in.UserID)
	return NewUser(user), err
}

type updateUserInput struct {
	UserInput
	Body wire.UpdateUser
}

func (h *handlers) userUpdate(_ context.Context, call *model.Call, in *updateUserInput) (wire.User, error) {
	user, err := h.engine.Access.UserRole(call, in.UserID, model.Role(in.Body.Role))
	return NewUser(user), err
}

func (h *handlers) userDelete(_ context.Context, call *model.Call, in *UserInput) (wire.DeletedRecord, error) {
	_, err := h.engine.Access.UserDelete(call, in.UserID)
	return wire.DeletedRecord{ID: in.UserID, Deleted: true}, err
}

type userActInput struct {
	UserInput
	Body *NoFields
}

func (h *handlers) setupLinkCreate(_ context.Context, call *model.Call, in *userActInput) (wire.SetupLink, error) {
	link, err := h.engine.Access.SetupLinkCreate(call, in.UserID)
	if err != nil {
		return wire.SetupLink{}, err
	}
	return h.newSetupLink(link), nil
}

// NewUserSession returns the wire form of a person's session.
func NewUserSession(s access.PersonSession) wire.UserSession {
	return wire.UserSession{
		ID: s.ID(), UserID: s.User, Email: s.Person.Email, IP: s.IP, UserAgent: s.UserAgent,
		CreatedAt: utc(s.CreatedAt), LastSeenAt: utc(s.LastSeenAt), ExpiresAt: utc(s.Ends()),
	}
}

type sessionListInput struct {
	PageInput
	CreatedInput
	UserID string `query:"user_id" minLength:"1" maxLength:"64" doc:"Only those of the person with this id."`
}

func (h *handlers) sessionList(_ context.Context, call *model.Call, in *sessionListInput) (core.List[wire.UserSession], error) {
	page, err := h.engine.Access.SessionList(call, access.SessionFilter{Filter: in.created(), User: in.UserID}, in.page())
	return convertList(page, NewUserSession), err
}

type endSessionInput struct {
	SessionID string `path:"sessionId" doc:"Id of the session."`
}

func (h *handlers) sessionEnd(_ context.Context, call *model.Call, in *endSessionInput) (wire.DeletedRecord, error) {
	err := h.engine.Access.SessionEnd(call, in.SessionID)
	return wire.DeletedRecord{ID: in.SessionID, Deleted: true}, err
}

func (h *handlers) sessionsEnd(_ context.Context, call *model.Call, in *UserInput) (wire.EndedSessions, error) {
	user, ended, err := h.engine.Access.UserSignOut(call, in.UserID)
	return wire.EndedSessions{UserID: user.ID, Ended: ended}, err
}
