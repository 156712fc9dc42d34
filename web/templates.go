package web

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"holdfast/engine/model"
)

// templates are the pages by file name, each with its layout. A page is parsed when it
// is first shown: all of them take 6 MB, and most appliances show few.
type templates map[string]func() (*template.Template, error)

func loadTemplates(a assets) (templates, error) {
	layout, err := template.New("").Funcs(functions(a)).ParseFS(files, "templates/layout/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse layout: %w", err)
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	all := templates{}
	for _, name := range names {
		all[path.Base(name)] = sync.OnceValues(func() (*template.Template, error) {
			page, err := layout.Clone()
			if err == nil {
				_, err = page.ParseFS(files, name)
			}
			if err != nil {
				return nil, fmt.Errorf("parse page: %w", err)
			}
			return page, nil
		})
	}
	return all, nil
}

// page returns the template of a page.
func (t templates) page(name string) (*template.Template, error) {
	load, ok := t[name]
	if !ok {
		return nil, fmt.Errorf("there is no page %s", name)
	}
	return load()
}

// view is the data of the layout.
type view struct {
	Title        string
	Path         string     // of this page
	User         model.User // zero if nobody is signed in
	Organization string     // its name
	Done         string     // confirmation of the last action
	Problem      string     // error message
	Request      string     // id of the request with the problem, "" without one
	Live         bool
	Data         any
	Sent         []fact // by a form that was refused because what it showed had changed
	Once         string // marks the forms of this page: see noteOnce
	match        string // the tag in the form that was sent, "" without one
}

// Match returns the tag for the form that goes to a path that ends in action: the present one, or that of the form that
// was sent if the page shows it again with what was typed.
func (v view) Match(action, present string) string {
	if path.Base(v.Path) == action {
		return cmp.Or(v.match, present)
	}
	return present
}

// Framed reports whether the page has the navigation. A page with a single
// question, such as signing in or letting a tool in, does not.
func (v view) Framed() bool {
	return v.User.ID != "" && v.Path != "/device" && !strings.HasPrefix(v.Path, "/device/") && v.Path != "/setup"
}

// May reports whether the user may perform an action; pages hide other actions.
func (v view) May(action model.Action) bool {
	return v.User.Role.Allows(model.OperationFor(action)) == nil
}

// render writes a complete page or none.
func (req *request) render(status int, a answer, problem string) {
	page, err := req.execute(a, problem)
	if err != nil {
		req.opts.Log.Error("render page", "page", a.page, "error", err)
		http.Error(req.w, "internal error", http.StatusInternalServerError)
		return
	}
	req.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	req.w.Header().Set("Cache-Control", "no-store")
	req.w.WriteHeader(status)
	_, _ = page.WriteTo(req.w) // the client may be gone
}

func (req *request) execute(a answer, problem string) (*bytes.Buffer, error) {
	t, err := req.templates.page(a.page)
	if err != nil {
		return nil, err
	}
	data := view{
		Title: a.title, Path: req.r.URL.Path, User: req.person.User,
		Done: doneText(req.r.URL.Query().Get("done")), Problem: problem, Live: a.live, Data: a.data,
		Sent: req.sent, match: req.form(matchField), Once: req.call.RequestID,
	}
	if data.User.ID != "" {
		org, err := req.engine.Access.Organization(data.User.Organization)
		if err != nil {
			return nil, err
		}
		data.Organization = org.Name
		if problem != "" {
			data.Request = req.call.RequestID
		}
	}
	var page bytes.Buffer
	return &page, t.ExecuteTemplate(&page, "layout", data)
}

// doneText returns the confirmation for an action. It uses a fixed list, so
// that a link cannot make the console show arbitrary text.
func doneText(what string) string {
	return map[string]string{
		"welcome":               "You are set up and signed in.",
		"signed_out":            "You are signed out.",
		"signed_out_everywhere": "You are signed out everywhere.",
		"password":              "Your password is changed. Other browsers are signed out.",
		"backup_started":        "The backup has begun.",
		"backup_pinned":         "The backup is pinned: it stays until it is unpinned.",
		"backup_unpinned":       "The backup is not pinned any more.",
		"backup_deleted":        "The backup is deleted.",
		"branch":                "The branch is being made. It is available when its state says so.",
		"branch_reset":          "The reset has begun. The branch goes on serving until the data of its parent is ready.",
		"restore_started":       "The restore has begun. The database goes on serving until the restored data is ready.",
		"upgrade_started":       "The upgrade has begun: the database is backed up first, then it stops until the upgrade is done.",
		"upgrade_tried":         "The dry run has begun. The database goes on serving; this page shows the result when you load it again.",
		"undo_started":          "The data that was replaced is being brought back.",
		"allowlist":             "The allow-list is in force.",
		"role_updated":          "The role is changed. Its sessions have ended.",
		"role_deleted":          "The role is deleted. What it made stays, for the owner to use or drop.",
		"export_requested":      "The export will be made. Load this page again to download it.",
		"rls":                   "Row-level security is changed.",
		"settings_updated":      "The settings are changed.",
		"extension":             "The extension is there.",
		"extension_dropped":     "The extension is dropped.",
		"slot_dropped":          "The replication slot is dropped.",
		"replication_on":        "Logical replication is on.",
		"replication_off":       "Logical replication is off.",
		"database_updated":      "The database is changed.",
		"statements_reset":      "The counters of its statements are forgotten.",
		"session_cancelled":     "The session's statement is cancelled.",
		"session_terminated":    "The session is ended.",
		"restarted":             "The database was restarted.",
		"database_deleted":      "The database is in the trash. Until it is emptied it can be brought back.",
		"operation_cancelled":   "It is cancelled, and what it had done is rolled back.",
		"import_cut_over":       "The cutover is done: the database accepts clients.",
		"import_cancelled":      "The import is cancelled, and its database is gone.",
		"bucket_created":        "The bucket is made.",
		"bucket_updated":        "The bucket is changed.",
		"bucket_restoring":      "The restore has begun. The bucket can be used meanwhile.",
		"bucket_deleted":        "The bucket is deleted.",
		"uploaded":              "The file is stored.",
		"object_deleted":        "The object is deleted.",
		"object_updated":        "The object is changed.",
		"key_dangerous_on":      "The key may delete now.",
		"key_dangerous_off":     "The key may not delete any more.",
		"key_revoked":           "The key is revoked: it does not work any more.",
		"person_role":           "The role is changed, and in force at once. An unused link for the account has ended.",
		"person_signed_out":     "The person is signed out everywhere.",
		"restored":              "It is back.",
		"restored_expiry_off":   "The bucket is back. Its objects do not expire any more, because some would have been removed immediately.",
		"purged":                "It is removed for good.",
		"session_ended":         "The session has ended.",
		"person_deleted":        "The account is removed.",
		"project_created":       "The project is made.",
		"project_renamed":       "The project has its new name.",
		"project_deleted":       "The project is deleted.",
		"webhook_updated":       "The webhook is changed.",
		"webhook_pinged":        "The test is on its way.",
		"webhook_resent":        "The delivery is sent again.",
		"webhook_deleted":       "The webhook is deleted.",
		"key_updated":           "The key is changed.",
	}[what]
}
