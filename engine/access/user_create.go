package access

import (
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
	err = s.core.Change(call, func(tx *meta.Tx) error { return insertUser(tx, user) })
	return user, err
}

// insertUser stores a person's account, unless its organization has as many as it can have.
func insertUser(tx *meta.Tx, user model.User) error {
	people, _, err := tx.Users().Newest(meta.ByOrganization, meta.Key(user.Organization), "", model.MaxPeople)
	if err != nil {
		return err
	}
	if len(people) == model.MaxPeople {
		return model.Errorf(model.CodeForbidden, "an organization can have %d people, with those who are invited; remove one first", model.MaxPeople)
	}
	return core.NameTaken(tx.Users().Insert(user), model.ResourceUser, user.Email)
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
