package access

import (
	"errors"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Person is a signed-in user and the session.
type Person struct {
	User    model.User
	Session model.Session
}

// sessionsOf returns a person's sessions, most recently seen first.
func sessionsOf(tx *meta.Tx, user string) ([]model.Session, error) {
	const all = 1 << 20
	sessions, _, err := tx.Sessions().Newest(meta.ByUser, meta.Key(user), "", all)
	slices.SortFunc(sessions, func(a, b model.Session) int { return b.LastSeenAt.Compare(a.LastSeenAt) })
	return sessions, err
}

// actorOf returns the user as the actor of calls.
func actorOf(user model.User) model.Actor {
	return model.Actor{Type: model.ActorUser, ID: user.ID, Name: user.Email}
}

func userResource(user model.User) model.Resource {
	return model.Resource{Type: model.ResourceUser, ID: user.ID, Name: user.Email}
}

// seenInterval is how often a session's last use is recorded.
const seenInterval = 5 * time.Minute

// WhoIs returns the person who is signed in with the token. Without a session the
// error is unauthorized.
func (s *Service) WhoIs(token model.Secret) (Person, error) {
	if token.IsZero() {
		return Person{}, notSignedIn()
	}
	var p Person
	err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		if p.Session, err = tx.Sessions().Get(hashToken(token)); err != nil {
			return err
		}
		p.User, err = tx.Users().Get(p.Session.User)
		return err
	})
	now := s.core.Clock()
	if errors.Is(err, meta.ErrNotFound) || err == nil && !p.Session.Usable(now) {
		return Person{}, notSignedIn()
	}
	if err != nil {
		return Person{}, err
	}
	if now.Sub(p.Session.LastSeenAt) >= seenInterval {
		s.seen(p.Session.TokenHash, now)
	}
	return p, nil
}

func notSignedIn() error { return model.Errorf(model.CodeUnauthorized, "sign in first") }

// seen records the use of a session. If that fails, the session ends sooner; the request
// is not refused.
func (s *Service) seen(hash string, now time.Time) {
	err := s.updateSession(hash, func(it *model.Session) { it.LastSeenAt = now })
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		s.core.Log.Warn("note the use of a session", "error", err)
	}
}

func (s *Service) updateSession(hash string, change func(*model.Session)) error {
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Sessions().Change(hash, func(it *model.Session) { change(it) })
	})
}

// SignOut ends the session of the call's person.
func (s *Service) SignOut(call *model.Call, p Person) error {
	call.Resource = userResource(p.User)
	return s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		err := tx.Sessions().Delete(p.Session.TokenHash)
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		return err
	})
}

// SignOutEverywhere ends every session of the call's person.
func (s *Service) SignOutEverywhere(call *model.Call, p Person) error {
	call.Resource = userResource(p.User)
	return s.core.ChangeAuthority(call, func(tx *meta.Tx) error { return endSessions(tx, p.User.ID, "") })
}

// endSessions ends a person's sessions except the one with the token hash except.
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

// Sessions returns the person's sessions, most recently seen first.
func (s *Service) Sessions(p Person) ([]model.Session, error) {
	sessions, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Session, error) { return sessionsOf(tx, p.User.ID) })
	now := s.core.Clock()
	return slices.DeleteFunc(sessions, func(it model.Session) bool { return !it.Usable(now) }), err
}
