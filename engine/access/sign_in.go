package access

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// newToken returns a token of 256 random bits and the hash to store.
func newToken() (token model.Secret, hash string) {
	random := core.RandomBytes()
	token = model.NewSecret(base64.RawURLEncoding.EncodeToString(random[:]))
	return token, hashToken(token)
}

func hashToken(token model.Secret) string {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return hex.EncodeToString(sum[:])
}

// SignIn checks a person's password and starts a session, replacing the one with the
// token old. The returned token is the only copy.
func (s *Service) SignIn(call *model.Call, email string, password, old model.Secret) (model.Secret, error) {
	address, err := model.NormalizeEmail("email", email)
	if err != nil {
		return model.Secret{}, cmp.Or(s.core.ThrottleAddress(call.IP, core.RateSignInAddress), err)
	}
	user, err := s.userByEmail(address)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return model.Secret{}, err
	}
	leave, err := s.admitSignIn(call, address, user)
	if err != nil {
		return model.Secret{}, err
	}
	defer leave()
	if err := s.checkPassword(call, user, password); err != nil {
		return model.Secret{}, err
	}
	return s.beginSession(call, user, old, func(*meta.Tx) error { return nil })
}

// admitSignIn admits a sign-in or returns why not. To an unknown client, it behaves the
// same whether or not an account with the e-mail address exists. The caller calls leave
// afterwards.
func (s *Service) admitSignIn(call *model.Call, email string, user model.User) (leave func(), err error) {
	known, err := s.knownClient(call, user)
	if err != nil {
		return nil, err
	}
	if known != "" {
		call.Known = true
		if err := s.core.Throttle(known, core.RateSignInKnown); err != nil {
			return nil, err
		}
		return s.passwords.known.enter(known, signInsPerClient)
	}
	if err := s.core.ThrottleAddress(call.IP, core.RateSignInAddress); err != nil {
		return nil, err
	}
	ofOne := signInsPerClient
	if core.IsLoopback(call.IP) {
		ofOne = unknownSignIns / 2
	}
	if leave, err = s.passwords.unknown.enter(model.VisitorOf(call.IP), ofOne); err != nil {
		return nil, err
	}
	if err := s.core.Throttle(email, core.RateSignInAccount); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// checkPassword returns nil if the password is the user's. The error and its timing do
// not reveal the reason: a user without an id has no account.
func (s *Service) checkPassword(call *model.Call, user model.User, password model.Secret) error {
	if user.ID != "" {
		call.Organization, call.Resource = user.Organization, userResource(user)
	}
	ok, err := s.passwords.verify(call.Known, password, user.PasswordHash)
	if err != nil {
		return err
	}
	if !ok {
		return wrongPassword()
	}
	return nil
}

func wrongPassword() error {
	return model.Errorf(model.CodeUnauthorized, "the e-mail address or the password is wrong")
}

// userByEmail returns the person with the normalized e-mail address.
func (s *Service) userByEmail(email string) (model.User, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.User, error) { return tx.Users().Find(meta.ByName, meta.Key(email)) })
}

// beginSession commits a session of the user together with the changes of also, if the
// password is still the one that user was read with. The session of the token old ends,
// so that a client that knew or planted that token is not signed in with the new one.
func (s *Service) beginSession(call *model.Call, user model.User, old model.Secret, also func(*meta.Tx) error) (model.Secret, error) {
	token, hash := newToken()
	now := s.core.Clock()
	call.Actor, call.Organization, call.Role = actorOf(user), user.Organization, user.Role
	call.Resource = userResource(user)
	err := s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
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
			if u.PasswordHash != user.PasswordHash { // it may have been changed during the check
				return wrongPassword()
			}
			u.LastSignInAt = &now
			return nil
		}); err != nil {
			return err
		}
		return tx.Sessions().Insert(model.Session{
			TokenHash: hash, User: user.ID,
			IP: call.IP, UserAgent: call.UserAgent, CreatedAt: now, LastSeenAt: now,
		})
	})
	return token, err
}

// maxSessions is the maximum number of a person's sessions; the oldest end.
const maxSessions = 50

// dropEndedSessions removes a person's expired sessions, and the oldest beyond the
// limit.
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
