package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// SetupLinkLife is how long a set-up link can be used.
const SetupLinkLife = 30 * time.Minute

// SetupLink is a fresh set-up link. Only the hash of Token is kept.
type SetupLink struct {
	Token     model.Secret
	ExpiresAt time.Time
}

// FirstStart is what is only ever known at the very first start.
type FirstStart struct {
	Organization model.Organization
	Setup        model.Secret // the token of the set-up link
	Key          model.Secret // zero when no first key was wanted
}

// Initialize makes the organization and project `default`, a set-up link and,
// when wanted, a full-access key, all in one transaction. It returns nil when
// the appliance has an organization already.
func (e *Engine) Initialize(withKey bool) (*FirstStart, error) {
	orgs, err := e.OrganizationList()
	if err != nil || len(orgs) > 0 {
		return nil, err
	}
	org := model.Organization{ID: e.newID(model.ResourceOrganization), Name: model.DefaultName, CreatedAt: e.clock()}
	project := e.newProject(org.ID, model.DefaultName)
	call := e.system(model.ActionOrganizationCreate, org.ID,
		model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: org.Name})
	token, link := e.newSetupLink(org.ID)
	first := &FirstStart{Organization: org, Setup: token}
	secret, key := e.mintKey(call, NewKey{
		Name: "first start", Preset: model.PresetFullAccess, Source: model.KeySourceFirstStart,
	})
	err = e.change(call, func(tx *meta.Tx) error {
		if withKey {
			if err := tx.Keys().Insert(key); err != nil {
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

func (e *Engine) newSetupLink(organization string) (model.Secret, model.SetupLink) {
	random := randomBytes()
	token := model.NewSecret(base64.RawURLEncoding.EncodeToString(random[:]))
	return token, model.SetupLink{
		TokenHash:    hashSetupToken(token),
		Organization: organization,
		ExpiresAt:    e.clock().Add(SetupLinkLife),
	}
}

func hashSetupToken(token model.Secret) []byte {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return []byte(hex.EncodeToString(sum[:]))
}

// SetupLinkCreate makes a set-up link for the call's organization. Earlier
// ones cannot be used any more.
func (e *Engine) SetupLinkCreate(call *model.Call) (SetupLink, error) {
	token, link := e.newSetupLink(call.Organization)
	call.Resource = model.Resource{Type: model.ResourceSetup}
	err := e.change(call, func(tx *meta.Tx) error {
		if err := dropSetupLinks(tx, call.Organization); err != nil {
			return err
		}
		return tx.SetupLinks().Insert(link)
	})
	return SetupLink{Token: token, ExpiresAt: link.ExpiresAt}, err
}

func dropSetupLinks(tx *meta.Tx, organization string) error {
	var old []string
	if err := tx.SetupLinks().All(func(l model.SetupLink) error {
		if l.Organization == organization {
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

// SetupLinkCheck says whether the token can still be used.
func (e *Engine) SetupLinkCheck(token model.Secret) error {
	return e.meta.View(func(tx *meta.Tx) error {
		_, err := e.setupLink(tx, token)
		return err
	})
}

func (e *Engine) setupLink(tx *meta.Tx, token model.Secret) (model.SetupLink, error) {
	link, err := tx.SetupLinks().Get(string(hashSetupToken(token)))
	if errors.Is(err, meta.ErrNotFound) || err == nil && !e.clock().Before(link.ExpiresAt) {
		return link, model.Errorf(model.CodeNotFound,
			"this set-up link was used or has expired; the operator gets a new one with `holdfast admin setup-link`")
	}
	return link, err
}

// SetupComplete makes the owner's account that the set-up link invites to,
// and uses the link up.
func (e *Engine) SetupComplete(call *model.Call, token model.Secret, email string, password model.Secret) (model.User, error) {
	if err := e.SetupLinkCheck(token); err != nil {
		return model.User{}, err
	}
	user, err := e.newUser("", NewUser{Email: email, Role: model.RoleOwner, Password: password})
	if err != nil {
		return user, err
	}
	call.Actor = model.Actor{Type: model.ActorUser, ID: user.ID, Name: user.Email}
	call.Resource = model.Resource{Type: model.ResourceUser, ID: user.ID, Name: user.Email}
	err = e.change(call, func(tx *meta.Tx) error {
		link, err := e.setupLink(tx, token)
		if err != nil {
			return err
		}
		user.Organization, call.Organization = link.Organization, link.Organization
		if err := tx.SetupLinks().Delete(string(link.TokenHash)); err != nil {
			return err
		}
		return nameTaken(tx.Users().Insert(user), model.ResourceUser, user.Email)
	})
	return user, err
}

// SetupLinkRenew makes a set-up link for the first organization as long as no
// person can sign in; it returns a zero Secret when one can.
func (e *Engine) SetupLinkRenew() (model.Secret, error) {
	orgs, err := e.OrganizationList()
	if err != nil || len(orgs) == 0 {
		return model.Secret{}, err
	}
	people := false
	if err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Users().All(func(model.User) error {
			people = true
			return nil
		})
	}); err != nil || people {
		return model.Secret{}, err
	}
	link, err := e.SetupLinkCreate(e.system(model.ActionSetupLinkCreate, orgs[0].ID, model.Resource{}))
	return link.Token, err
}
