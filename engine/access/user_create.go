package access

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/password"
)

// NewUser describes an account to create.
type NewUser struct {
	Email    string
	Role     model.Role
	Password model.Secret
}

// UserCreate creates a person's account in the call's organization.
func (s *Service) UserCreate(call *model.Call, in NewUser) (model.User, error) {
	user, err := s.newUser(call.Organization, in)
	if err != nil {
		return user, err
	}
	call.Resource = userResource(user)
	err = s.core.Change(call, func(tx *meta.Tx) error { return s.insertUser(tx, user) })
	return user, err
}

// insertUser stores a person's account, unless its organization has as many as it can have.
func (s *Service) insertUser(tx *meta.Tx, user model.User) error {
	if tx.Users().HasAtLeast(meta.ByOrganization, meta.Key(user.Organization), model.MaxPeople) {
		return model.Errorf(model.CodeForbidden, "an organization can have %d people, with those who are invited; remove one first", model.MaxPeople)
	}
	return s.insertAccount(tx, user)
}

// insertAccount stores a person's account, for whose e-mail address no invitation of another organization counts that has
// ended.
func (s *Service) insertAccount(tx *meta.Tx, user model.User) error {
	if err := s.freeEmail(tx, user); err != nil {
		return err
	}
	return core.NameTaken(tx.Users().Insert(user), model.ResourceUser, user.Email)
}

// freeEmail removes the account that holds a person's e-mail address in another organization, if nobody has set its
// password and no link can any more: an organization could otherwise keep people out of all others.
func (s *Service) freeEmail(tx *meta.Tx, user model.User) error {
	held, err := tx.Users().Find(meta.ByName, meta.Key(user.Email))
	if errors.Is(err, meta.ErrNotFound) || err == nil && (held.Organization == user.Organization || held.PasswordHash != "") {
		return nil
	}
	if err != nil {
		return err
	}
	now := s.core.Clock()
	links, err := tx.SetupLinks().Where(func(l model.SetupLink) bool { return l.User == held.ID && now.Before(l.ExpiresAt) })
	if err != nil || len(links) > 0 {
		return err
	}
	call := s.core.System(model.ActionUserDelete, held.Organization, userResource(held))
	call.Note("reason", "the invitation had ended, and the address was needed")
	return errors.Join(dropSetupLinks(tx, held.Organization, held.ID), tx.Users().Delete(held.ID), s.core.Audit(tx, call, nil))
}

// newUser validates in and returns the record, with the password hashed.
func (s *Service) newUser(organization string, in NewUser) (model.User, error) {
	email, err := model.NormalizeEmail("email", in.Email)
	if err != nil {
		return model.User{}, err
	}
	if _, err := model.ParseRole("role", string(in.Role)); err != nil {
		return model.User{}, err
	}
	if err := password.ForPerson("password", in.Password, email); err != nil {
		return model.User{}, err
	}
	return model.User{
		ID: s.core.NewID(model.ResourceUser), Organization: organization, Email: email, Role: in.Role,
		PasswordHash: s.passwords.hash(in.Password), CreatedAt: s.core.Clock(),
	}, nil
}
