package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// newToken makes a token of 256 random bits and what is stored of it.
func newToken() (token model.Secret, hash string) {
	random := randomBytes()
	token = model.NewSecret(base64.RawURLEncoding.EncodeToString(random[:]))
	return token, hashToken(token)
}

func hashToken(token model.Secret) string {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return hex.EncodeToString(sum[:])
}

// SignIn checks a person's password and begins a session, in place of the one
// whose token is old. The returned token is the only copy there will ever be.
func (e *Engine) SignIn(call *model.Call, email string, password, old model.Secret) (model.Secret, error) {
	address, err := model.NormalizeEmail("email", email)
	if err != nil {
		return model.Secret{}, cmp.Or(e.throttleAddress(call.IP, rateSignInAddress), err)
	}
	user, err := e.userByEmail(address)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return model.Secret{}, err
	}
	leave, err := e.admitSignIn(call, address, user)
	if err != nil {
		return model.Secret{}, err
	}
	defer leave()
	if err := e.checkPassword(call, user, password); err != nil {
		return model.Secret{}, err
	}
	return e.beginSession(call, user, old, func(*meta.Tx) error { return nil })
}

// admitSignIn lets a sign-in begin, or says why not. Whether the account with
// the e-mail address exists makes no difference to a stranger. The caller calls
// leave after it.
func (e *Engine) admitSignIn(call *model.Call, email string, user model.User) (leave func(), err error) {
	known, err := e.acquaintance(call, user)
	if err != nil {
		return nil, err
	}
	if known != "" {
		call.Known = true
		if err := e.throttle(known, rateSignInKnown); err != nil {
			return nil, err
		}
		return e.passwords.acquaintances.enter(known, mostOfOne)
	}
	if err := e.throttleAddress(call.IP, rateSignInAddress); err != nil {
		return nil, err
	}
	ofOne := mostOfOne
	if isLoopback(call.IP) {
		ofOne = mostStrangers / 2
	}
	if leave, err = e.passwords.strangers.enter(model.VisitorOf(call.IP), ofOne); err != nil {
		return nil, err
	}
	if err := e.throttle(email, rateSignInAccount); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// checkPassword returns nil when the password is the user's. The error does
// not say why it is not, and takes as long: a user without an id has no account.
func (e *Engine) checkPassword(call *model.Call, user model.User, password model.Secret) error {
	if user.ID != "" {
		call.Organization, call.Resource = user.Organization, userResource(user)
	}
	ok, err := e.passwords.verify(call.Known, password, user.PasswordHash)
	if err != nil {
		return err
	}
	if !ok {
		return wrongPassword()
	}
	return nil
}

func wrongPassword() error {
	return model.Errorf(model.CodeUnauthorized, "this e-mail address and password do not go together")
}

func (e *Engine) userByEmail(email string) (model.User, error) {
	var user model.User
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		user, err = tx.Users().Find(meta.ByName, meta.Key(email))
		return err
	})
	return user, err
}

// beginSession commits a session of the user's, together with what also
// changes, as long as the password is still the one that user was read with.
// The session of the token old ends: whoever knew it, or planted it, is not
// signed in with this one.
func (e *Engine) beginSession(call *model.Call, user model.User, old model.Secret, also func(*meta.Tx) error) (model.Secret, error) {
	token, hash := newToken()
	now := e.clock()
	call.Actor, call.Organization, call.Role = actorOf(user), user.Organization, user.Role
	call.Resource = userResource(user)
	err := e.change(call, func(tx *meta.Tx) error {
		if err := also(tx); err != nil {
			return err
		}
		if err := tx.Sessions().Delete(hashToken(old)); err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		if err := dropEndedSessions(tx, user.ID, now); err != nil {
			return err
		}
		if _, err := tx.Users().Update(user.ID, func(u *model.User) error {
			if u.PasswordHash != user.PasswordHash { // checking it takes long enough for another to be set
				return wrongPassword()
			}
			u.LastSignInAt = &now
			return nil
		}); err != nil {
			return err
		}
		return tx.Sessions().Insert(model.Session{
			TokenHash: hash, User: user.ID, Organization: user.Organization,
			IP: call.IP, UserAgent: call.UserAgent, CreatedAt: now, LastSeenAt: now,
		})
	})
	return token, err
}

// maxSessions is how many sessions a person has at a time; the oldest end.
const maxSessions = 50

// dropEndedSessions removes a person's sessions that have ended by themselves,
// and the oldest of too many.
func dropEndedSessions(tx *meta.Tx, user string, now time.Time) error {
	sessions, err := sessionsOf(tx, user)
	if err != nil {
		return err
	}
	left := 0
	for _, s := range sessions {
		if left++; s.Usable(now) && left < maxSessions {
			continue
		}
		if err := tx.Sessions().Delete(s.TokenHash); err != nil {
			return err
		}
	}
	return nil
}
