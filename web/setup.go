package web

import (
	"net/http"
	"net/url"

	"holdfast/engine/model"
)

const setupPath = "/setup"

// maxForm bounds a submitted form, in bytes.
const maxForm = 16 << 10

// SetupPath is where a set-up link leads, without the host.
func SetupPath(token model.Secret) string {
	return setupPath + "?token=" + url.QueryEscape(token.Reveal())
}

// setupPage is what setup.html shows.
type setupPage struct {
	Token   string
	Email   string
	Problem string
	Least   int // characters of a password
}

func (p *pages) setupForm(w http.ResponseWriter, r *http.Request) {
	page := setupPage{Token: r.URL.Query().Get("token"), Least: model.MinUserPassword}
	if err := p.engine.SetupLinkCheck(model.NewSecret(page.Token)); err != nil {
		p.fail(w, "setup_expired.html", page, err)
		return
	}
	p.render(w, http.StatusOK, "setup.html", page)
}

func (p *pages) setupSubmit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "This form could not be read.", http.StatusBadRequest)
		return
	}
	page := setupPage{Token: r.PostForm.Get("token"), Email: r.PostForm.Get("email"), Least: model.MinUserPassword}
	call := setupCall(r)
	_, err := p.engine.SetupComplete(call, model.NewSecret(page.Token), page.Email, model.NewSecret(r.PostForm.Get("password")))
	p.engine.Finish(call, err)
	switch model.CodeOf(err) {
	case "":
		p.render(w, http.StatusOK, "setup_done.html", page)
	case model.CodeNotFound:
		p.fail(w, "setup_expired.html", page, err)
	default:
		p.fail(w, "setup.html", page, err)
	}
}

func setupCall(r *http.Request) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: model.ActionUserCreate},
		Actor:     model.Actor{Type: model.ActorUser},
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: r.UserAgent(),
	}
}

// fail shows the page again with what is wrong.
func (p *pages) fail(w http.ResponseWriter, name string, page setupPage, err error) {
	status := http.StatusUnprocessableEntity
	page.Problem = "Something went wrong here. The appliance's log says more."
	switch model.CodeOf(err) {
	case model.CodeInternal:
		p.opts.Log.Error("set up", "error", err)
		status = http.StatusInternalServerError
	case model.CodeNotFound:
		status = http.StatusNotFound
		fallthrough
	default:
		page.Problem = model.PublicMessage(err)
	}
	p.render(w, status, name, page)
}
