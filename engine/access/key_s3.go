package access

import (
	"encoding/base64"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// S3Secret returns the secret access key of the key with that id. The id is the access key id. A signature needs a
// secret that the appliance can compute again, and only the hash of a key's text is stored.
func (s *Service) S3Secret(id string) model.Secret {
	return model.NewSecret(base64.RawURLEncoding.EncodeToString(s.core.AccessKeys.Sign("s3\n" + id)))
}

// OwnS3Secret returns the secret access key of the call's key.
func (s *Service) OwnS3Secret(call *model.Call) model.Secret {
	call.Resource = model.Resource{Type: model.ResourceKey, ID: call.Key.ID, Name: call.Key.Name}
	return s.S3Secret(call.Key.ID)
}

// ErrNoAccessKey means that there is no key with an access key id, or no longer.
var ErrNoAccessKey = errors.New("unknown access key")

// AuthenticateSigned attributes the call to the key with an id, and records the key's use, if verify accepts the
// key's secret. It returns ErrNoAccessKey if there is no such key. Like with Authenticate, an attempt with a
// key that was revoked or has expired appears in the log of its organization.
func (s *Service) AuthenticateSigned(call *model.Call, id string, verify func(secret string) error) error {
	if !model.ResourceKey.HasPrefix(id) {
		return ErrNoAccessKey
	}
	key, err := s.core.Meta.CachedKeyByID(id)
	if errors.Is(err, meta.ErrNotFound) {
		return ErrNoAccessKey
	}
	if err != nil {
		return err
	}
	if err := verify(s.S3Secret(key.ID).Reveal()); err != nil {
		return err
	}
	if !s.attribute(call, key) {
		return ErrNoAccessKey
	}
	return nil
}

// attribute makes an authenticated key the caller, and reports whether it is usable.
func (s *Service) attribute(call *model.Call, key model.Key) bool {
	call.Organization = key.Organization
	call.Actor = model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}
	now := s.core.Clock()
	if !key.Usable(now) {
		return false
	}
	call.Key = &key
	s.core.Audits.Touch(key.ID, core.KeyUse{At: now, IP: call.IP})
	return true
}
