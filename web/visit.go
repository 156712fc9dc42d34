package web

import (
	"errors"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"holdfast/engine"
	"holdfast/engine/model"
)

// visit is one request for a page and its answer.
type visit struct {
	*pages
	w      http.ResponseWriter
	r      *http.Request
	call   *model.Call
	person engine.Person // who is signed in, zero for nobody
}

// answer is what a handler wants to be sent: a page, or where to go on.
type answer struct {
	page  string // the template
	title string
	data  any
	// live pages are asked for again while something is under way.
	live     bool
	redirect string
}

// handler answers a visit. An error with a page shows what went wrong on that
// page, and one without on a page of its own.
type handler func(*visit) (answer, error)

// maxForm bounds a submitted form, in bytes.
const maxForm = 64 << 10

// open serves a page that needs nobody to be signed in.
func (p *pages) open(r openRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := p.begin(w, req, model.Operation{Action: r.action})
		if person, err := p.engine.WhoIs(v.token()); err == nil {
			v.person = person
		}
		v.serve(r.handler, r.action != "")
	})
}

// signedIn serves a page to who is signed in and may see it.
func (p *pages) signedIn(r route) http.Handler {
	operation := model.OperationFor(r.action)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := p.begin(w, req, operation)
		person, err := p.engine.WhoIs(v.token())
		if model.CodeOf(err) == model.CodeUnauthorized {
			v.askToSignIn()
			return
		}
		v.identify(person)
		v.serve(func(v *visit) (answer, error) {
			if err != nil {
				return answer{}, err
			}
			err := p.engine.Authorize(v.call)
			if model.CodeOf(err) == model.CodeRateLimited {
				return formAgain(r.action)(v, err)
			}
			if err != nil {
				return answer{}, err
			}
			return r.handler(v)
		}, true)
	})
}

func (p *pages) begin(w http.ResponseWriter, r *http.Request, operation model.Operation) *visit {
	v := &visit{pages: p, w: w, r: r, call: &model.Call{
		Operation: operation,
		Actor:     model.Actor{Type: model.ActorUser},
		RequestID: engine.NewRequestID(),
		IP:        model.ClientIP(r.RemoteAddr),
		UserAgent: printable(r.UserAgent(), model.MaxUserAgent),
	}}
	v.call.Browser = v.cookie(p.browserCookie())
	return v
}

// identify makes the visit the person's.
func (v *visit) identify(person engine.Person) {
	if v.opts.Known != nil && person.User.ID != "" {
		v.opts.Known(v.r)
	}
	v.person = person
	v.call.Actor = model.Actor{Type: model.ActorUser, ID: person.User.ID, Name: person.User.Email}
	v.call.Organization, v.call.Role = person.User.Organization, person.User.Role
}

// serve has the visit answered and audited.
func (v *visit) serve(h handler, audited bool) {
	if err := v.readForm(); err != nil {
		v.fail(answer{}, err)
		return
	}
	a, err := h(v)
	if audited {
		v.engine.Finish(v.call, err)
	}
	switch {
	case err != nil:
		v.fail(a, err)
	case a.redirect != "":
		v.leadTo(a.redirect)
	case a.page != "":
		v.render(http.StatusOK, a, "")
	}
}

// readForm reads the form that was sent, unless the handler reads the body as
// it comes in. One that cannot be read is not taken for an empty one.
func (v *visit) readForm() error {
	if v.call.Operation.Action == model.ActionObjectUpload {
		return nil
	}
	media, _, _ := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if v.r.ContentLength != 0 && media != "application/x-www-form-urlencoded" {
		return model.Invalid("form", "must be application/x-www-form-urlencoded")
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return model.Invalid("form", "could not be read, or is larger than %d bytes", maxForm)
	}
	return nil
}

// leadTo answers with where to go on. (http.Redirect cleans paths, and what
// would be left of an object's key is another's.)
func (v *visit) leadTo(to string) {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}

// opens returns why the person may not see the form for an action, nil where
// that is allowed. Nothing of a budget is spent.
func (v *visit) opens(action model.Action) error {
	return v.person.User.Role.Allows(model.OperationFor(action))
}

// fail shows what went wrong, or says it to the script that uploads files.
func (v *visit) fail(a answer, err error) {
	problem := model.PublicMessage(err)
	if model.CodeOf(err) == model.CodeInternal {
		v.opts.Log.Error("page failed", "path", v.r.URL.Path, "request_id", v.call.RequestID, "error", err)
		problem = "Something went wrong here. The appliance's log says more under " + v.call.RequestID + "."
	}
	if v.r.Method == http.MethodPut {
		http.Error(v.w, sentence(problem), v.status(err))
		return
	}
	if a.page == "" {
		a = answer{page: "problem.html", title: problemTitle(err)}
	}
	if refused, ok := errors.AsType[*model.Error](err); ok && refused.RetryAfter > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(refused.RetryAfter.Seconds())))))
	}
	// What went wrong is read in peace; and where a form was sent to there may
	// be no page to ask for again.
	a.live = a.live && v.r.Method == http.MethodGet
	v.render(v.status(err), a, sentence(problem))
}

// status is how HTTP says what went wrong.
func (v *visit) status(err error) int { return v.opts.StatusOf(model.CodeOf(err)) }

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

// sentence makes an error's message one: a capital letter and a full stop. A
// field's name before a colon is written as it is called on the page.
func sentence(message string) string {
	if field, rest, found := strings.Cut(message, ": "); found && !strings.Contains(field, " ") {
		message = strings.ReplaceAll(field, "_", " ") + ": " + rest
	}
	runes := []rune(message)
	if len(runes) == 0 {
		return message
	}
	runes[0] = unicode.ToUpper(runes[0])
	if last := runes[len(runes)-1]; unicode.IsLetter(last) || unicode.IsDigit(last) {
		runes = append(runes, '.')
	}
	return string(runes)
}

// form returns what was typed into a field of the form.
func (v *visit) form(name string) string { return v.r.PostForm.Get(name) }

// checked reports whether a box of the form was ticked.
func (v *visit) checked(name string) bool { return v.form(name) == "on" }

func (v *visit) notFound() (answer, error) {
	return answer{}, model.Errorf(model.CodeNotFound, "there is no such page")
}

// page returns which part of a list is asked for.
func (v *visit) page() engine.Page {
	return engine.Page{Cursor: v.r.URL.Query().Get("cursor")}
}

// done is where a visit goes on once its act is done: to a page that says so.
func done(path, what string) answer {
	return answer{redirect: path + "?" + url.Values{"done": {what}}.Encode()}
}

// printable removes what cannot be seen and cuts text to at most limit bytes.
func printable(text string, limit int) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text[:min(len(text), limit)])
}
