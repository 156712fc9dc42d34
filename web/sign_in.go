package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/engine/model"
)

const signInPath = "/sign-in"

// signInData is what sign_in.html shows.
type signInData struct {
	Email  string
	Next   string // where to go on to
	Undone bool   // what was sent was not done, because nobody was signed in
}

func (req *request) signInForm() (answer, error) {
	query := req.r.URL.Query()
	data := signInData{Next: localPath(query.Get("next")), Undone: query.Has("undone")}
	if req.person.User.ID != "" {
		return answer{redirect: data.Next}, nil
	}
	return answer{page: "sign_in.html", title: "Sign in", data: data}, nil
}

func (req *request) signIn() (answer, error) {
	data := signInData{Email: req.form("email"), Next: localPath(req.form("next"))}
	token, err := req.engine.Access.SignIn(req.call, data.Email, model.NewSecret(req.form("password")), req.token())
	if err != nil {
		return answer{page: "sign_in.html", title: "Sign in", data: data}, err
	}
	req.beginSession(token)
	return answer{redirect: data.Next}, nil
}

func (req *request) signOut() (answer, error) {
	if err := req.engine.Access.SignOut(req.call, req.person); err != nil {
		return answer{}, err
	}
	req.setToken(model.Secret{})
	return done(signInPath, "signed_out"), nil
}

func (req *request) signOutEverywhere() (answer, error) {
	if err := req.engine.Access.SignOutEverywhere(req.call, req.person); err != nil {
		return answer{}, err
	}
	req.setToken(model.Secret{})
	return done(signInPath, "signed_out_everywhere"), nil
}

// askToSignIn leads to the sign-in page, and from there back to the page that
// was asked for, or from which a form was sent. The form is not carried out
// afterwards.
func (req *request) askToSignIn() {
	query := url.Values{}
	next := req.r.URL.RequestURI()
	switch req.r.Method {
	case http.MethodPut:
		req.fail(answer{}, model.Errorf(model.CodeUnauthorized, "you are signed out"))
		return
	case http.MethodPost:
		query.Set("undone", "1")
		from, err := url.Parse(req.r.Referer())
		if err != nil {
			from = &url.URL{}
		}
		next = localPath(from.RequestURI())
	}
	if next != "/" {
		query.Set("next", next)
	}
	to := url.URL{Path: signInPath, RawQuery: query.Encode()}
	req.leadTo(to.String())
}

// localPath returns where a person is led after signing in: a path of the
// console, whatever a link that led to the sign-in page said.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.Contains(to, `\`) || strings.HasPrefix(u.Path, signInPath) {
		return "/"
	}
	return u.RequestURI()
}

// cookieName is the session cookie's. Cookies do not know ports: two
// appliances on one machine would sign each other's people out.
func (p *pages) cookieName() string {
	name := "holdfast"
	if port := p.base.Port(); port != "" {
		name += "-" + port
	}
	if p.secure() {
		return "__Host-" + name
	}
	return name
}

func (p *pages) secure() bool { return p.base.Scheme == "https" }

// browserCookie names the cookie by which an account's sign-in knows the
// browser again.
func (p *pages) browserCookie() string { return p.cookieName() + "-known" }

// browserLife is how long a browser keeps that cookie: as long as browsers
// keep any (draft-ietf-httpbis-rfc6265bis, 400 days).
const browserLife = 400 * 24 * time.Hour

// token returns the session's token that the browser sent.
func (req *request) token() model.Secret { return req.cookie(req.cookieName()) }

func (req *request) cookie(name string) model.Secret {
	cookie, err := req.r.Cookie(name)
	if err != nil {
		return model.Secret{}
	}
	return model.NewSecret(cookie.Value)
}

// beginSession has the browser keep the token of the session that has begun,
// and a token by which later sign-ins know the browser.
func (req *request) beginSession(token model.Secret) {
	req.setToken(token)
	req.setCookie(req.browserCookie(), req.engine.Access.BrowserToken(req.call.Actor.ID), browserLife)
}

// setToken has the browser keep the session's token; a zero one is forgotten.
// Lax and not Strict, so that a link from elsewhere, to the device page for
// one, finds the person signed in; nothing is changed by following a link.
func (req *request) setToken(token model.Secret) {
	req.setCookie(req.cookieName(), token, model.SessionLife)
}

// setCookie has the browser keep a token for a time; a zero one is forgotten.
func (req *request) setCookie(name string, token model.Secret, life time.Duration) {
	cookie := &http.Cookie{
		Name: name, Value: token.Reveal(), Path: "/",
		HttpOnly: true, Secure: req.secure(), SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds()),
	}
	if token.IsZero() {
		cookie.MaxAge = -1
	}
	http.SetCookie(req.w, cookie)
}
