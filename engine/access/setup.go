package access

import (
	"errors"
	"net/url"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/password"
)

// SetupLinkLife is how long a link that creates an owner is valid, and PersonLinkLife
// one that sets an existing person's password.
const (
	SetupLinkLife  = 30 * time.Minute
	PersonLinkLife = 24 * time.Hour
)

// SetupLink is a new set-up link. Only the hash of Token is stored.
type SetupLink struct {
	Token     model.Secret
	ExpiresAt time.Time
}

// unshownKey is the setting with the id of the first key until it has been shown.
const unshownKey = "unshown_key"

// FirstStart is the result of the first start, or of the next one if the first ended
// before it could show the key.
type FirstStart struct {
	Organization model.Organization
	Setup        model.Secret // the token of the set-up link; zero if a person can sign in
	Key          model.Secret // zero if no first key was requested
}

// Initialize creates the organization and project `default`, a set-up link and, if
// requested, a full-access key, all in one transaction. If the appliance already has an
// organization, it returns nil, unless the first key was not shown: it then replaces
// that key. A caller that shows the key then calls KeyShown.
func (s *Service) Initialize(withKey bool) (*FirstStart, error) {
	orgs, err := s.OrganizationList()
	if err != nil {
		return nil, err
	}
	if len(orgs) > 0 {
		return s.replaceUnshownKey(withKey)
	}
	org := model.Organization{ID: s.core.NewID(model.ResourceOrganization), Name: model.DefaultName, CreatedAt: s.core.Clock()}
	project := s.newProject(org.ID, model.DefaultName)
	call := s.core.System(model.ActionOrganizationCreate, org.ID,
		model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: org.Name})
	token, link := s.newSetupLink(call, "")
	first := &FirstStart{Organization: org, Setup: token}
	secret, key := s.mintFirstKey(call)
	err = s.core.Change(call, func(tx *meta.Tx) error {
		if withKey {
			if err := insertUnshown(tx, key); err != nil {
				return err
			}
		}
		return errors.Join(tx.Organizations().Insert(org), tx.Projects().Insert(project), tx.SetupLinks().Insert(link))
	})
	if withKey {
		first.Key = secret
	}
	return first, err
}

func (s *Service) mintFirstKey(call *model.Call) (model.Secret, model.Key) {
	return s.mintKey(call, NewKey{Name: "first start", Preset: model.PresetFullAccess, Source: model.KeySourceFirstStart})
}

func insertUnshown(tx *meta.Tx, key model.Key) error {
	return errors.Join(tx.Keys().Insert(key), tx.PutSetting(unshownKey, []byte(key.ID)))
}

// KeyShown records that the first key was shown.
func (s *Service) KeyShown() error {
	return s.core.Meta.Update(func(tx *meta.Tx) error { return tx.PutSetting(unshownKey, nil) })
}

// replaceUnshownKey revokes the first key if the start that made it ended before it
// could show it, and makes another if requested. It returns nil if there is no such
// key.
func (s *Service) replaceUnshownKey(withKey bool) (*FirstStart, error) {
	var old model.Key
	first := &FirstStart{}
	err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		id := tx.Setting(unshownKey)
		if len(id) == 0 {
			return nil
		}
		if old, err = tx.Keys().Get(string(id)); errors.Is(err, meta.ErrNotFound) { // revoked, and replaced by another since
			return nil
		}
		if err != nil {
			return err
		}
		first.Organization, err = tx.Organizations().Get(old.Organization)
		return err
	})
	if err != nil || old.ID == "" {
		return nil, err
	}
	call := s.core.System(model.ActionKeyRevoke, old.Organization, model.Resource{Type: model.ResourceKey, ID: old.ID, Name: old.Name})
	secret, key := s.mintFirstKey(call)
	if withKey {
		call.Note("replaced_by", key.ID)
		first.Key = secret
	}
	if err := s.core.Change(call, func(tx *meta.Tx) error {
		if _, err := revokeKey(tx, old.ID, s.core.Clock()); err != nil {
			return err
		}
		if withKey {
			return insertUnshown(tx, key)
		}
		return tx.PutSetting(unshownKey, nil)
	}); err != nil {
		return nil, unlessReadOnly(err)
	}
	first.Setup, err = s.SetupLinkRenew()
	return first, err
}

// newSetupLink makes a link for the person with the id user, or for a new owner if user
// is "".
func (s *Service) newSetupLink(call *model.Call, user string) (model.Secret, model.SetupLink) {
	token, hash := newToken()
	life := SetupLinkLife
	if user != "" {
		life = PersonLinkLife
	}
	link := model.SetupLink{
		TokenHash: []byte(hash), Organization: call.Organization, User: user, ExpiresAt: s.core.Clock().Add(life),
	}
	if call.IsPerson() || call.Key != nil {
		link.Maker = call.Actor.ID
	}
	return token, link
}

// SetupLinkCreate makes a set-up link with which the person with the id user sets a new
// password or, if user is "", a new owner creates an account. It invalidates earlier
// ones.
func (s *Service) SetupLinkCreate(call *model.Call, user string) (SetupLink, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return SetupLink{}, err
	}
	token, link := s.newSetupLink(call, user)
	call.Resource = model.Resource{Type: model.ResourceSetup}
	if call.IsPerson() && user == call.Actor.ID { // this would bypass the old password
		return SetupLink{}, model.Errorf(model.CodeForbidden, "change your own password in the settings; if you have lost it, ask another person, or the operator")
	}
	err := s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if user == "" {
			if err := mayManage(call, model.RoleOwner); err != nil {
				return err
			}
		} else {
			found, err := managedUser(tx, call, user)
			if err != nil {
				return err
			}
			if err := mayLetIn(call, found.Role); err != nil {
				return err
			}
		}
		if err := dropSetupLinks(tx, call.Organization, user); err != nil {
			return err
		}
		return tx.SetupLinks().Insert(link)
	})
	return SetupLink{Token: token, ExpiresAt: link.ExpiresAt}, err
}

// dropSetupLinks removes the links for one person or, if user is "", for new owners.
func dropSetupLinks(tx *meta.Tx, organization, user string) error {
	var old []string
	if err := tx.SetupLinks().All(func(l model.SetupLink) error {
		if l.Organization == organization && l.User == user {
			old = append(old, string(l.TokenHash))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, hash := range old {
		if err := tx.SetupLinks().Delete(hash); err != nil {
			return err
		}
	}
	return nil
}

// SetupLinkCheck returns the person whose password the token's link sets, the zero User
// if it creates a new owner's account.
func (s *Service) SetupLinkCheck(token model.Secret) (model.User, error) {
	_, user, err := s.setupTarget(token)
	return user, err
}

func (s *Service) setupTarget(token model.Secret) (link model.SetupLink, user model.User, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		link, user, err = s.setupLink(tx, token)
		return err
	})
	return link, user, err
}

// setupLink returns the token's link and the person whose password it sets, the zero User
// if it creates a new owner's account.
func (s *Service) setupLink(tx *meta.Tx, token model.Secret) (link model.SetupLink, user model.User, err error) {
	link, err = tx.SetupLinks().Get(hashToken(token))
	if errors.Is(err, meta.ErrNotFound) || err == nil && !s.core.Clock().Before(link.ExpiresAt) {
		return link, user, noSetupLink()
	}
	if err == nil && link.User != "" {
		user, err = tx.Users().Get(link.User)
	}
	if err != nil {
		return link, user, err
	}
	return link, user, s.makerMayStill(tx, link, user)
}

func noSetupLink() error {
	return model.Errorf(model.CodeNotFound,
		"this set-up link was used or withdrawn, or has expired; the operator gets a new one with `holdfast admin setup-link`")
}

// makerMayStill refuses a link whose maker is gone or may no longer make such links: a link
// must not grant more than its maker may.
func (s *Service) makerMayStill(tx *meta.Tx, link model.SetupLink, user model.User) error {
	switch {
	case link.Maker == "":
		return nil
	case model.ResourceKey.HasPrefix(link.Maker):
		return s.keyMayStill(tx, link, user)
	}
	maker, err := tx.Users().Get(link.Maker)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	target := user.Role
	if link.User == "" {
		target = model.RoleOwner
	}
	if !maker.Role.AtLeast(target) || maker.Role.Allows(model.OperationFor(model.ActionSetupLinkCreate)) != nil {
		return noSetupLink()
	}
	return nil
}

// keyMayStill refuses a link of a key that was revoked, or whose person has another role by
// now.
func (s *Service) keyMayStill(tx *meta.Tx, link model.SetupLink, user model.User) error {
	key, err := keyOf(tx, link.Organization, link.Maker)
	if err != nil && model.CodeOf(err) != model.CodeNotFound {
		return err
	}
	if err != nil || !key.Usable(s.core.Clock()) || mayLetIn(&model.Call{Key: &key}, user.Role) != nil {
		return noSetupLink()
	}
	return nil
}

// SetupPath returns the path of a set-up link's page, without the host.
func SetupPath(token model.Secret) string { return "/setup?token=" + url.QueryEscape(token.Reveal()) }

// SetupComplete consumes a set-up link: it sets the password of the person the link is
// for, or creates a new owner's account with the e-mail address, and signs in.
func (s *Service) SetupComplete(call *model.Call, token model.Secret, email string, chosen, old model.Secret) (model.Secret, error) {
	if err := s.core.ThrottleAddress(call.IP, core.RateSetup); err != nil {
		return model.Secret{}, err
	}
	link, user, err := s.setupTarget(token)
	if err != nil {
		return model.Secret{}, err
	}
	store := func(tx *meta.Tx) error { return setPassword(tx, user) }
	if link.User == "" {
		user, err = s.newUser(link.Organization, NewUser{Email: email, Role: model.RoleOwner, Password: chosen})
		store = func(tx *meta.Tx) error { return s.insertAccount(tx, user) }
	} else if err = password.ForPerson("password", chosen, user.Email); err == nil {
		user.PasswordHash = s.passwords.hash(chosen)
	}
	if err != nil {
		return model.Secret{}, err
	}
	return s.beginSession(call, user, old, func(tx *meta.Tx) error {
		if err := s.useSetupLink(tx, token); err != nil {
			return err
		}
		return store(tx)
	})
}

func (s *Service) useSetupLink(tx *meta.Tx, token model.Secret) error {
	link, _, err := s.setupLink(tx, token)
	if err != nil {
		return err
	}
	return tx.SetupLinks().Delete(string(link.TokenHash))
}

// setPassword stores a person's new password and ends all sessions started with the old
// one.
func setPassword(tx *meta.Tx, user model.User) error {
	if err := endSessions(tx, user.ID, ""); err != nil {
		return err
	}
	return tx.Users().Change(user.ID, func(u *model.User) { u.PasswordHash = user.PasswordHash })
}

// SetupLinkRenew makes a set-up link for the first organization if no person can sign in
// yet; otherwise, or on a read-only appliance, it returns a zero Secret.
func (s *Service) SetupLinkRenew() (model.Secret, error) {
	orgs, err := s.OrganizationList()
	if err != nil || len(orgs) == 0 {
		return model.Secret{}, err
	}
	people := false
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Users().All(func(u model.User) error {
			people = people || u.PasswordHash != ""
			return nil
		})
	}); err != nil || people {
		return model.Secret{}, err
	}
	link, err := s.SetupLinkCreate(s.core.System(model.ActionSetupLinkCreate, orgs[0].ID, model.Resource{}), "")
	if err != nil {
		return model.Secret{}, unlessReadOnly(err)
	}
	return link.Token, nil
}

// unlessReadOnly returns nil for the refusal of a read-only appliance: it starts without a new key or set-up link.
func unlessReadOnly(err error) error {
	if model.CodeOf(err) == model.CodeReadOnly {
		return nil
	}
	return err
}
