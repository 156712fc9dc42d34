package web

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// request is a request for a page, and the state of its response.
type request struct {
	*pages
	w      http.ResponseWriter
	r      *http.Request
	call   *model.Call
	person access.Person // the signed-in user, zero if there is none
	sent   []fact        // see view.Sent
}

// answer is a handler's result: a page or a redirect.
type answer struct {
	page  string // the template
	title string
	data  any
	// live pages reload while something is in progress.
	live bool
	// wait waits until a live page has changed, at most so long; nil for pages that are rendered anew to find out.
	wait     func(longest time.Duration) (changed bool)
	redirect string
}

// handler handles a request.
type handler func(*request) (answer, error)

// page shows a page. A cause is the error of a submitted form: the page then
// shows the error and what the user typed. An error without a page is shown on a
// page of its own.
type page func(*request, error) (answer, error)

// show returns the handler of a GET request for a page.
func show(p page) handler { return func(req *request) (answer, error) { return p(req, nil) } }

// maxForm is the maximum size of a submitted form, in bytes.
const maxForm = 64 << 10

// open serves a page that needs no session.
func (p *pages) open(route openRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := p.begin(w, r, model.Operation{Action: route.action})
		if person, err := p.engine.Access.WhoIs(req.token()); err == nil {
			req.person = person
		}
		req.serve(route.handler, route.action != "")
	})
}

// signedIn serves a page to signed-in users who may see it.
func (p *pages) signedIn(route route) http.Handler {
	operation := model.OperationFor(route.action)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := p.begin(w, r, operation)
		person, err := p.engine.Access.WhoIs(req.token())
		if model.CodeOf(err) == model.CodeUnauthorized {
			req.askToSignIn()
			return
		}
		req.identify(person)
		req.serve(func(req *request) (answer, error) {
			if err != nil {
				return answer{}, err
			}
			if err := req.identifyAgain(); err != nil { // the form may have taken longer than the session or the role
				return answer{}, err
			}
			var a answer
			err := p.engine.Access.Authorize(req.call)
			if err != nil && model.CodeOf(err) != model.CodeRateLimited {
				return a, err
			}
			if err == nil {
				a, err = route.handler(req)
				err = req.conclude(err)
			}
			if err != nil && route.form != nil {
				return route.form(req, err)
			}
			return a, err
		}, true)
	})
}

func (p *pages) begin(w http.ResponseWriter, r *http.Request, operation model.Operation) *request {
	req := &request{pages: p, w: w, r: r, call: &model.Call{
		Operation: operation,
		Actor:     model.Actor{Type: model.ActorUser},
		RequestID: core.NewRequestID(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: printable(r.UserAgent(), model.MaxUserAgent),
	}}
	req.call.Browser = req.cookie(p.browserCookie())
	return req
}

// identify attributes the request to a user.
func (req *request) identify(person access.Person) {
	if req.opts.Known != nil && person.User.ID != "" {
		req.opts.Known(req.r)
	}
	req.person = person
	req.call.Actor = model.Actor{Type: model.ActorUser, ID: person.User.ID, Name: person.User.Email}
	req.call.Organization, req.call.Role = person.User.Organization, person.User.Role
	req.call.Session = person.Session.TokenHash
}

// identifyAgain attributes the request to its user as the session and the role are now.
func (req *request) identifyAgain() error {
	person, err := req.engine.Access.WhoIs(req.token())
	if err == nil {
		req.identify(person)
	}
	return err
}

// serve handles the request and writes its audit entry.
func (req *request) serve(h handler, audited bool) {
	defer req.engine.Core.EndIdempotent(req.call, nil) // unless conclude has
	err := req.readForm()
	if err == nil {
		req.noteOnce()
		err = req.readCondition()
	}
	if err != nil {
		req.fail(answer{}, err)
		return
	}
	a, err := h(req)
	if audited {
		req.engine.Core.Finish(req.call, err)
	}
	if err == nil && req.r.Header.Get("Accept") == "text/event-stream" {
		req.follow(h, a)
		return
	}
	switch {
	case err != nil:
		req.fail(a, err)
	case a.redirect != "":
		req.redirectTo(a.redirect)
	case a.page != "":
		req.render(http.StatusOK, a, "")
	}
}

// readForm parses the submitted form, unless the handler streams the body. A
// form that cannot be parsed is an error, not an empty form.
func (req *request) readForm() error {
	if req.call.Operation.Action == model.ActionObjectUpload {
		return nil
	}
	media, _, _ := mime.ParseMediaType(req.r.Header.Get("Content-Type"))
	if req.r.ContentLength != 0 && media != "application/x-www-form-urlencoded" {
		return model.Invalid("form", "must be application/x-www-form-urlencoded")
	}
	req.r.Body = http.MaxBytesReader(req.w, req.r.Body, maxForm)
	if err := req.r.ParseForm(); err != nil {
		return model.Invalid("form", "could not be read, or is larger than %d bytes", maxForm)
	}
	return nil
}

// redirectTo redirects to a URL. http.Redirect would clean the path, which changes
// an object's key to another's.
func (req *request) redirectTo(to string) {
	req.w.Header().Set("Location", to)
	req.w.WriteHeader(http.StatusSeeOther)
}

// opens returns an error if the user may not see the form for an action. It
// does not count against a rate limit.
func (req *request) opens(action model.Action) error {
	return req.person.User.Role.Allows(model.OperationFor(action))
}

// fail shows an error page, or sends the message to the script that uploads
// files.
func (req *request) fail(a answer, err error) {
	problem := model.PublicMessage(err)
	if model.CodeOf(err) == model.CodeInternal {
		req.opts.Log.Error("page failed", "path", req.r.URL.Path, "request_id", req.call.RequestID, "error", err)
		problem = "Something went wrong here. The appliance's log says more under " + req.call.RequestID + "."
	}
	if req.r.Method == http.MethodPut {
		http.Error(req.w, sentence(problem), req.status(err))
		return
	}
	if a.page == "" {
		a = answer{page: "problem.html", title: problemTitle(err)}
	}
	if refused, ok := errors.AsType[*model.Error](err); ok && refused.RetryAfter > 0 {
		req.w.Header().Set("Retry-After", strconv.Itoa(refused.RetryAfterSeconds()))
	}
	// Do not reload an error page: the user may still be reading, and the path
	// of a form may not have a page.
	a.live = a.live && req.r.Method == http.MethodGet
	req.render(req.status(err), a, sentence(problem))
}

// status returns the HTTP status of an error.
func (req *request) status(err error) int { return req.opts.StatusOf(err) }

func problemTitle(err error) string {
	switch model.CodeOf(err) {
	case model.CodeForbidden:
		return "Not allowed"
	case model.CodeNotFound:
		return "Not found"
	case model.CodeInternal:
		return "Something went wrong"
	default:
		return "That did not work"
	}
}

// sentence turns an error's message into a sentence: a full stop, and a capital letter unless it begins with a name. It
// replaces underscores in a leading field name, but not in the name of one of PostgreSQL's settings.
func sentence(message string) string {
	if setting, is := strings.CutPrefix(message, "settings."); is {
		return sentence("setting " + setting)
	}
	runes := []rune(message)
	if len(runes) == 0 {
		return message
	}
	if field, rest, found := strings.Cut(message, ": "); found && !strings.Contains(field, " ") {
		runes = []rune(strings.ReplaceAll(field, "_", " ") + ": " + rest)
	} else if ordinary(message) {
		runes[0] = unicode.ToUpper(runes[0])
	}
	if last := runes[len(runes)-1]; unicode.IsLetter(last) || unicode.IsDigit(last) {
		runes = append(runes, '.')
	}
	return string(runes)
}

// ordinary reports whether a text begins with a word of the language, and not with an address, a host or the like,
// which have their own spelling.
func ordinary(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return !strings.ContainsAny(strings.TrimRight(word, ".,:;!?"), "@._0123456789")
}

// id returns the id in the path.
func (req *request) id() string { return req.r.PathValue("id") }

// form returns the value of a form field.
func (req *request) form(name string) string { return req.r.PostForm.Get(name) }

// typed returns the value of a form field, or what is stored if no form with the field was sent.
func (req *request) typed(name, stored string) string {
	if !req.r.PostForm.Has(name) {
		return stored
	}
	return req.form(name)
}

// ticked reports whether a box is ticked: in the form with the field beside, or as stored if none was sent.
func (req *request) ticked(name, beside string, stored bool) bool {
	if !req.r.PostForm.Has(beside) {
		return stored
	}
	return req.checked(name)
}

// checked reports whether a box of the form is ticked.
func (req *request) checked(name string) bool { return req.form(name) == "on" }

func (req *request) notFound() (answer, error) {
	return answer{}, model.Errorf(model.CodeNotFound, "there is no such page")
}

// page returns the requested page of a list.
func (req *request) page() core.Page {
	return core.Page{Cursor: req.r.URL.Query().Get("cursor")}
}

// done redirects to a page that confirms the operation.
func done(path, what string) answer {
	return answer{redirect: path + "?" + url.Values{"done": {what}}.Encode()}
}

// printable removes unprintable characters and cuts text to at most limit
// bytes.
func printable(text string, limit int) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text[:min(len(text), limit)])
}
