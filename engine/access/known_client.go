package access

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BrowserToken makes the token that a browser keeps after a person has signed in with
// it, as evidence for the same person's later sign-ins. It grants nothing. A sign-in
// with it has a separate budget and separate hashing capacity, so that unknown clients
// that try the person's password do not lock the person out.
func (s *Service) BrowserToken(user string) model.Secret {
	random := core.RandomBytes()
	nonce := hex.EncodeToString(random[:16])
	mac := s.core.Signer.Sign(browserMessage(user, nonce))
	return model.NewSecret(nonce + "." + base64.RawURLEncoding.EncodeToString(mac))
}

// knowsBrowser returns a name for the browser that keeps the token, "" if the user has
// never signed in with it.
func (s *Service) knowsBrowser(user string, token model.Secret) string {
	nonce, signature, _ := strings.Cut(token.Reveal(), ".")
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || user == "" || !s.core.Signer.Verify(browserMessage(user, nonce), mac) {
		return ""
	}
	return "browser " + nonce
}

func browserMessage(user, nonce string) string { return "known browser\n" + user + "\n" + nonce }

// knownClient returns a name for a caller that has signed in to the user's
// account before, by the browser or by the address of an existing session. The
// machine's own address does not count: it may be a proxy's, which all clients
// share. It returns "" for an unknown client, and always if the account does not
// exist.
func (s *Service) knownClient(call *model.Call, user model.User) (string, error) {
	if user.ID == "" {
		return "", nil
	}
	if browser := s.knowsBrowser(user.ID, call.Browser); browser != "" {
		return browser, nil
	}
	if core.IsLoopback(call.IP) {
		return "", nil
	}
	sessions, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Session, error) { return sessionsOf(tx, user.ID) })
	if err != nil {
		return "", err
	}
	now := s.core.Clock()
	for _, it := range sessions {
		if it.Usable(now) && model.VisitorOf(it.IP) == model.VisitorOf(call.IP) {
			return user.ID + " from " + model.VisitorOf(call.IP), nil
		}
	}
	return "", nil
}
