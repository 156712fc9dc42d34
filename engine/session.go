package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Person is somebody who is signed in.
type Person struct {
	User    model.User
	Session model.Session
}

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
	if err := e.throttle(call.IP, rateSignInAddress); err != nil {
		return model.Secret{}, err
	}
	user, err := e.checkPassword(call, email, password)
	if err != nil {
		return model.Secret{}, err
	}
	return e.beginSession(call, user, old, func(*meta.Tx) error { return nil })
}

// checkPassword returns the person whose e-mail address and password these
// are. Why they are not is not told, and takes as long.
func (e *Engine) checkPassword(call *model.Call, email string, password model.Secret) (model.User, error) {
	address, err := model.NormalizeEmail("email", email)
	if err != nil {
		return model.User{}, err
	}
	if err := e.throttle(address, rateSignInAccount); err != nil {
		return model.User{}, err
	}
	user, err := e.userByEmail(address)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return user, err
	}
	if err == nil {
		call.Organization, call.Resource = user.Organization, userResource(user)
	}
	ok, err := e.passwords.verify(password, user.PasswordHash)
	if err != nil {
		return user, err
	}
	if !ok {
		return user, model.Errorf(model.CodeUnauthorized, "this e-mail address and password do not go together")
	}
	return user, nil
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
// changes. The session of the token old ends: whoever knew it, or planted it,
// is not signed in with this one.
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

// sessionsOf returns a person's sessions, most recently seen first.
func sessionsOf(tx *meta.Tx, user string) ([]model.Session, error) {
	const all = 1 << 20
	sessions, _, err := tx.Sessions().Newest(meta.ByUser, meta.Key(user), "", all)
	slices.SortFunc(sessions, func(a, b model.Session) int { return b.LastSeenAt.Compare(a.LastSeenAt) })
	return sessions, err
}

func actorOf(user model.User) model.Actor {
	return model.Actor{Type: model.ActorUser, ID: user.ID, Name: user.Email}
}

func userResource(user model.User) model.Resource {
	return model.Resource{Type: model.ResourceUser, ID: user.ID, Name: user.Email}
}

// seenInterval is how exactly it is known when a session was last used.
const seenInterval = 5 * time.Minute

// WhoIs returns who is signed in with the token; nobody is unauthorized.
func (e *Engine) WhoIs(token model.Secret) (Person, error) {
	if token.IsZero() {
		return Person{}, notSignedIn()
	}
	var p Person
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		if p.Session, err = tx.Sessions().Get(hashToken(token)); err != nil {
			return err
		}
		p.User, err = tx.Users().Get(p.Session.User)
		return err
	})
	now := e.clock()
	if errors.Is(err, meta.ErrNotFound) || err == nil && !p.Session.Usable(now) {
		return Person{}, notSignedIn()
	}
	if err != nil {
		return Person{}, err
	}
	if now.Sub(p.Session.LastSeenAt) >= seenInterval {
		e.seen(p.Session.TokenHash, now)
	}
	return p, nil
}

func notSignedIn() error { return model.Errorf(model.CodeUnauthorized, "sign in first") }

// seen notes that a session is used. Where that cannot be written the session
// ends sooner, which is no reason to refuse the request.
func (e *Engine) seen(hash string, now time.Time) {
	err := e.updateSession(hash, func(s *model.Session) { s.LastSeenAt = now })
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		e.log.Warn("note the use of a session", "error", err)
	}
}

func (e *Engine) updateSession(hash string, change func(*model.Session)) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Sessions().Update(hash, func(s *model.Session) error {
			change(s)
			return nil
		})
		return err
	})
}

// SignOut ends the session of the call's person.
func (e *Engine) SignOut(call *model.Call, p Person) error {
	call.Resource = userResource(p.User)
	return e.change(call, func(tx *meta.Tx) error {
		err := tx.Sessions().Delete(p.Session.TokenHash)
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		return err
	})
}

// SignOutEverywhere ends every session of the call's person.
func (e *Engine) SignOutEverywhere(call *model.Call, p Person) error {
	call.Resource = userResource(p.User)
	return e.change(call, func(tx *meta.Tx) error { return endSessions(tx, p.User.ID, "") })
}

// endSessions ends a person's sessions but the one with the hash except.
func endSessions(tx *meta.Tx, user, except string) error {
	sessions, err := sessionsOf(tx, user)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.TokenHash == except {
			continue
		}
		if err := tx.Sessions().Delete(s.TokenHash); err != nil {
			return err
		}
	}
	return nil
}

// Sessions returns where the person is signed in, most recently seen first.
func (e *Engine) Sessions(p Person) ([]model.Session, error) {
	var sessions []model.Session
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		sessions, err = sessionsOf(tx, p.User.ID)
		return err
	})
	now := e.clock()
	return slices.DeleteFunc(sessions, func(s model.Session) bool { return !s.Usable(now) }), err
}
