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
	Next   string // where to go after signing in
	Undone bool   // a submitted form was discarded because the session had ended
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

// askToSignIn redirects to the sign-in page, which leads back to the requested
// page, or to the page of a submitted form. The form is not carried out
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
	req.redirectTo(to.String())
}

// localPath returns the path to open after signing in: always a path of the
// console, whatever the link to the sign-in page says.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.Contains(to, `\`) || strings.HasPrefix(u.Path, signInPath) {
		return "/"
	}
	return u.RequestURI()
}

// cookieName returns the name of the session cookie. It includes the port
// because cookies ignore ports: two appliances on one host would sign out each
// other's users.
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

// browserCookie returns the name of the cookie by which an account's sign-in
// recognizes the browser.
func (p *pages) browserCookie() string { return p.cookieName() + "-known" }

// browserLife is how long a browser keeps that cookie: the maximum that
// browsers allow (draft-ietf-httpbis-rfc6265bis, 400 days).
const browserLife = 400 * 24 * time.Hour

// token returns the session token that the browser sent.
func (req *request) token() model.Secret { return req.cookie(req.cookieName()) }

func (req *request) cookie(name string) model.Secret {
	cookie, err := req.r.Cookie(name)
	if err != nil {
		return model.Secret{}
	}
	return model.NewSecret(cookie.Value)
}

// beginSession sets the cookies with the new session's token and with the token
// by which later sign-ins recognize the browser.
func (req *request) beginSession(token model.Secret) {
	req.setToken(token)
	req.setCookie(req.browserCookie(), req.engine.Access.BrowserToken(req.call.Actor.ID), browserLife)
}

// setToken sets the cookie with the session token; a zero token deletes it. It
// is Lax, not Strict, so that the user is signed in after following a link from
// elsewhere, such as to the device page. Following a link changes nothing.
func (req *request) setToken(token model.Secret) {
	req.setCookie(req.cookieName(), token, model.SessionLife)
}

// setCookie sets a cookie with a token; a zero token deletes it.
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
