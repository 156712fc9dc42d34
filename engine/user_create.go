package engine

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/argon2"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewUser is what a person's account is made of.
type NewUser struct {
	Email    string
	Role     model.Role
	Password model.Secret
}

// UserCreate makes a person's account in the call's organization.
func (e *Engine) UserCreate(call *model.Call, in NewUser) (model.User, error) {
	user, err := e.newUser(call.Organization, in)
	if err != nil {
		return user, err
	}
	call.Resource = model.Resource{Type: model.ResourceUser, ID: user.ID, Name: user.Email}
	err = e.change(call, func(tx *meta.Tx) error {
		return nameTaken(tx.Users().Insert(user), model.ResourceUser, user.Email)
	})
	return user, err
}

// newUser checks in and makes the record; the password is hashed here, which
// takes tens of milliseconds and 19 MiB by design.
func (e *Engine) newUser(organization string, in NewUser) (model.User, error) {
	email, err := model.NormalizeEmail("email", in.Email)
	if err != nil {
		return model.User{}, err
	}
	switch in.Role {
	case model.RoleOwner, model.RoleAdmin, model.RoleViewer:
	default:
		return model.User{}, model.Invalid("role", "must be one of owner, admin, viewer")
	}
	if err := model.ValidateUserPassword("password", in.Password); err != nil {
		return model.User{}, err
	}
	return model.User{
		ID: e.newID(model.ResourceUser), Organization: organization, Email: email, Role: in.Role,
		PasswordHash: hashPassword(in.Password), CreatedAt: e.clock(),
	}, nil
}

// The parameters of argon2id, as OWASP's password storage cheat sheet gives
// them: 19 MiB, two passes, one lane.
const (
	argonMemory  = 19 * 1024
	argonPasses  = 2
	argonLanes   = 1
	argonSaltLen = 16
	argonKeyLen  = 32
)

// hashPassword hashes in the PHC string format.
func hashPassword(password model.Secret) string {
	salt := make([]byte, argonSaltLen)
	_, _ = rand.Read(salt)
	key := argon2.IDKey([]byte(password.Reveal()), salt, argonPasses, argonMemory, argonLanes, argonKeyLen)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, argonMemory, argonPasses, argonLanes, encode(salt), encode(key))
}
