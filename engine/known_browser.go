package engine

import (
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"strings"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BrowserToken makes what a browser keeps after a person has signed in with
// it: evidence of that, for later sign-ins of the same person. It grants nothing.
// A sign-in with it has a budget and a share of the work of its own, so that
// unknown clients that try the person's password do not lock the person out.
func (e *Engine) BrowserToken(user string) model.Secret {
	random := randomBytes()
	nonce := hex.EncodeToString(random[:16])
	mac := e.signer.sign(browserMessage(user, nonce))
	return model.NewSecret(nonce + "." + base64.RawURLEncoding.EncodeToString(mac))
}

// knowsBrowser returns what names the browser that keeps the token, "" where
// the user has never signed in with it.
func (e *Engine) knowsBrowser(user string, token model.Secret) string {
	nonce, signature, _ := strings.Cut(token.Reveal(), ".")
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || user == "" || !e.signer.verify(browserMessage(user, nonce), mac) {
		return ""
	}
	return "browser " + nonce
}

func browserMessage(user, nonce string) string { return "known browser\n" + user + "\n" + nonce }

// acquaintance returns a name for a caller that has signed in to the user's
// account before, by the browser or by the address of an existing session. The
// machine's own address does not count: it may be a proxy's, which all clients
// share. It returns "" for an unknown client, and always if the account does not
// exist.
func (e *Engine) acquaintance(call *model.Call, user model.User) (string, error) {
	if user.ID == "" {
		return "", nil
	}
	if browser := e.knowsBrowser(user.ID, call.Browser); browser != "" {
		return browser, nil
	}
	if isLoopback(call.IP) {
		return "", nil
	}
	var sessions []model.Session
	if err := e.meta.View(func(tx *meta.Tx) (err error) {
		sessions, err = sessionsOf(tx, user.ID)
		return err
	}); err != nil {
		return "", err
	}
	now := e.clock()
	for _, s := range sessions {
		if s.Usable(now) && model.VisitorOf(s.IP) == model.VisitorOf(call.IP) {
			return user.ID + " from " + model.VisitorOf(call.IP), nil
		}
	}
	return "", nil
}

// isLoopback reports whether an address is the machine's own. Everybody has it
// where a proxy on this machine stands in front.
func isLoopback(ip string) bool {
	address, err := netip.ParseAddr(ip)
	return err == nil && address.Unmap().IsLoopback()
}
