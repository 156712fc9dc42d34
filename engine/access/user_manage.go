package access

import (
	"errors"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/password"
)

// UserFilter selects people. An empty field selects all; people have no project and no name.
type UserFilter struct {
	core.Filter
	Email string
	Role  model.Role
}

// UserList returns the people of the call's organization that match the filter, newest first.
func (s *Service) UserList(call *model.Call, filter UserFilter, page core.Page) (core.List[model.User], error) {
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: call.Organization}
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionUserList, (*meta.Tx).Users, page,
		core.Select(filter, func(u model.User) bool {
			return filter.Admits("", "", u.CreatedAt) && core.Equals(strings.ToLower(filter.Email), u.Email) && core.Equals(filter.Role, u.Role)
		}))
}

// UserInvite creates the account of a person without a password, and the link with which
// that person sets one.
func (s *Service) UserInvite(call *model.Call, email string, role model.Role) (model.User, SetupLink, error) {
	address, err := model.NormalizeEmail("email", email)
	if err != nil {
		return model.User{}, SetupLink{}, err
	}
	if _, err := model.ParseRole("role", string(role)); err != nil {
		return model.User{}, SetupLink{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.User{}, SetupLink{}, err
	}
	user := model.User{
		ID: s.core.NewID(model.ResourceUser), Organization: call.Organization, Email: address, Role: role, CreatedAt: s.core.Clock(),
	}
	token, link := s.newSetupLink(call, user.ID)
	call.Resource = userResource(user)
	call.Note("role", string(role))
	err = s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if err := mayLetIn(call, role); err != nil {
			return err
		}
		if err := s.insertUser(tx, user); err != nil {
			return err
		}
		return tx.SetupLinks().Insert(link)
	})
	return user, SetupLink{Token: token, ExpiresAt: link.ExpiresAt}, err
}

// UserRole changes a person's role. The change takes effect at once, in open sessions
// too. Links that set the person's password end, because their maker may not be allowed
// to make one for the new role.
func (s *Service) UserRole(call *model.Call, id string, role model.Role) (model.User, error) {
	if _, err := model.ParseRole("role", string(role)); err != nil {
		return model.User{}, err
	}
	var user model.User
	call.Note("role", string(role))
	err := s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if err := mayManage(call, role); err != nil {
			return err
		}
		found, err := managedUser(tx, call, id)
		if err == nil {
			err = call.Match(found.Tag())
		}
		if err != nil {
			return err
		}
		if role != model.RoleOwner {
			if err := keepAnOwner(tx, found); err != nil {
				return err
			}
		}
		if err := dropSetupLinks(tx, found.Organization, id); err != nil {
			return err
		}
		user, err = tx.Users().Update(id, func(u *model.User) error {
			u.Role = role
			return nil
		})
		return err
	})
	return user, err
}

// UserDelete removes a person's account and ends its sessions. Keys that the person made
// belong to the organization and stay.
func (s *Service) UserDelete(call *model.Call, id string) (model.User, error) {
	var user model.User
	err := s.core.ChangeAuthority(call, func(tx *meta.Tx) (err error) {
		if user, err = managedUser(tx, call, id); err != nil {
			return err
		}
		if err := keepAnOwner(tx, user); err != nil {
			return err
		}
		if err := errors.Join(endSessions(tx, id, ""), dropSetupLinks(tx, user.Organization, id)); err != nil {
			return err
		}
		return tx.Users().Delete(id)
	})
	return user, err
}

// UserSignOut ends every session of a person, and returns how many there were.
func (s *Service) UserSignOut(call *model.Call, id string) (user model.User, ended int, err error) {
	err = s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if user, err = managedUser(tx, call, id); err != nil {
			return err
		}
		sessions, err := sessionsOf(tx, id)
		ended = len(sessions)
		return errors.Join(err, endSessions(tx, id, ""))
	})
	return user, ended, err
}

// UserPassword changes the password of the call's person. It ends the sessions in other
// browsers and the links that could set the password.
func (s *Service) UserPassword(call *model.Call, p Person, current, next model.Secret) error {
	checked, err := s.checkOwnPassword(call, p, current)
	if err != nil {
		return err
	}
	if err := password.ForPerson("new_password", next, p.User.Email); err != nil {
		return err
	}
	return s.replacePassword(call, checked, p.Session.TokenHash, s.passwords.hash(next))
}

// checkOwnPassword checks a signed-in person's password again, and returns the account
// that it was checked against.
func (s *Service) checkOwnPassword(call *model.Call, p Person, current model.Secret) (model.User, error) {
	client := "session " + p.Session.TokenHash
	if err := s.core.Throttle(client, core.RateSignInKnown); err != nil {
		return model.User{}, err
	}
	leave, err := s.passwords.known.enter(client, signInsPerClient)
	if err != nil {
		return model.User{}, err
	}
	defer leave()
	user, err := s.userByEmail(p.User.Email)
	if err != nil {
		return user, err
	}
	call.Known = true
	err = s.checkPassword(call, user, current)
	if model.CodeOf(err) == model.CodeUnauthorized {
		err = notYourPassword()
	}
	return user, err
}

// replacePassword replaces the checked password by the hash of a new one, unless it was
// replaced meanwhile. All sessions but keep end.
func (s *Service) replacePassword(call *model.Call, checked model.User, keep, hash string) error {
	return s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if err := errors.Join(endSessions(tx, checked.ID, keep), dropSetupLinks(tx, checked.Organization, checked.ID)); err != nil {
			return err
		}
		_, err := tx.Users().Update(checked.ID, func(u *model.User) error {
			if u.PasswordHash != checked.PasswordHash {
				return notYourPassword()
			}
			u.PasswordHash = hash
			return nil
		})
		return err
	})
}

func notYourPassword() error { return model.Invalid("current_password", "is not your password") }

// UserGet returns one person of the call's organization.
func (s *Service) UserGet(call *model.Call, id string) (model.User, error) {
	call.Resource = model.Resource{Type: model.ResourceUser, ID: id}
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.User, error) { return userOf(tx, call.Organization, id) })
}

// UserID returns the id of the person in the call's organization with that id or e-mail
// address.
func (s *Service) UserID(call *model.Call, idOrEmail string) (string, error) {
	if model.ResourceUser.HasPrefix(idOrEmail) {
		return idOrEmail, nil
	}
	email, err := model.NormalizeEmail("email", idOrEmail)
	if err != nil {
		return "", err
	}
	user, err := s.userByEmail(email)
	if errors.Is(err, meta.ErrNotFound) || err == nil && user.Organization != call.Organization {
		return "", model.NotFound(model.ResourceUser, idOrEmail)
	}
	return user.ID, err
}

// userOf returns the person with id if it belongs to the organization.
func userOf(tx *meta.Tx, organization, id string) (model.User, error) {
	user, err := tx.Users().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && user.Organization != organization {
		return model.User{}, model.NotFound(model.ResourceUser, id)
	}
	return user, err
}

// managedUser is userOf for a caller that is about to change the account.
func managedUser(tx *meta.Tx, call *model.Call, id string) (model.User, error) {
	user, err := userOf(tx, call.Organization, id)
	if err != nil {
		return user, err
	}
	call.Resource = userResource(user)
	return user, mayManage(call, user.Role)
}

// mayManage refuses a caller who would create, change or remove an account with a higher
// role than their own, and a key that would do so with any role but viewer: an admin can do
// what no key can, such as let a key delete.
func mayManage(call *model.Call, role model.Role) error {
	if call.Key != nil && role != model.RoleViewer {
		return model.Errorf(model.CodeForbidden, "a key manages the accounts of viewers only, since an %s may do more than any key; sign in to the console for this", role)
	}
	if call.IsPerson() && !call.Role.AtLeast(role) {
		return model.Errorf(model.CodeForbidden, "only an owner may do this to the account of an owner; you are signed in as %s", call.Role)
	}
	return nil
}

// mayLetIn is mayManage for a caller who gets the link to sign in to an account with that
// role. A key must hold everything that the role allows and have no expiry: the account
// stays.
func mayLetIn(call *model.Call, role model.Role) error {
	if err := mayManage(call, role); err != nil || call.Key == nil {
		return err
	}
	for _, scope := range model.Scopes() {
		if role.Holds(scope) && !call.Key.Holds(scope) {
			return model.Errorf(model.CodeInsufficientScope, "this key lacks the scope %s, which every %s has", scope, role)
		}
	}
	if call.Key.ExpiresAt != nil {
		return model.Errorf(model.CodeForbidden, "this key expires, and an account does not: use a key without an expiry, or sign in to the console")
	}
	return nil
}

// keepAnOwner refuses to remove the last owner who can sign in.
func keepAnOwner(tx *meta.Tx, leaving model.User) error {
	if leaving.Role != model.RoleOwner {
		return nil
	}
	others, err := countIn(tx.Users(), meta.ByOrganization, meta.Key(leaving.Organization), func(u model.User) bool {
		return u.ID != leaving.ID && u.Role == model.RoleOwner && u.PasswordHash != ""
	})
	if err != nil || others > 0 {
		return err
	}
	return model.Errorf(model.CodeForbidden, "%s is the organization's last owner; make another person an owner first", leaving.Email)
}
