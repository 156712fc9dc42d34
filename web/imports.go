package web

import (
	"cmp"
	"time"

	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/password"
)

func (req *request) imports() (answer, error) {
	list, err := req.engine.Imports.List(req.call, imports.Filter{}, req.page())
	live := false
	for _, i := range list.Items {
		live = live || !i.Status.Final()
	}
	return answer{page: "imports.html", title: "Imports", data: list, live: live}, err
}

// importForm is what import_new.html shows. It excludes the source's URL and
// the new password: the page does not echo them.
type importForm struct {
	Projects        []model.Project
	Project, Name   string
	User            string
	SameCredentials bool
	Follow          bool
	Publication     string
	Version         string
}

// Least returns the minimum length of a password.
func (importForm) Least() int { return password.Min }

func (req *request) importNew(cause error) (answer, error) {
	if err := req.opens(model.ActionImportCreate); err != nil {
		return answer{}, err
	}
	form := req.typedImport()
	var err error
	form.Projects, err = req.engine.Access.Projects(req.call)
	return answer{page: "import_new.html", title: "New import", data: form}, cmp.Or(cause, err)
}

func (req *request) typedImport() importForm {
	return importForm{
		Project: req.form("project"), Name: req.form("name"), User: req.form("username"),
		SameCredentials: req.form("credentials") == "same",
		Follow:          req.form("mode") == "follow", Publication: req.form("publication"), Version: req.form("version"),
	}
}

func (req *request) importCreate() (answer, error) {
	form := req.typedImport()
	in := imports.NewImport{
		Project: form.Project, Name: form.Name, SourceURL: model.NewSecret(req.form("source_url")),
		SameCredentials: form.SameCredentials,
	}
	in.Version = form.Version
	if form.Follow {
		in.Follow, in.Publication = true, form.Publication
	}
	// Ignore what was typed under the option that was not chosen.
	if !form.SameCredentials {
		in.Username, in.Password = form.User, model.NewSecret(req.form("password"))
	}
	record, err := req.engine.Imports.Create(req.r.Context(), req.call, in)
	return answer{redirect: importPath(record.ID)}, err
}

func importPath(id string) string { return "/imports/" + id }

// importData is what import.html shows.
type importData struct {
	model.Import
	// Left is the estimated remaining time of copying, 0 if unknown.
	Left time.Duration
	// Flaws are the first differences from the source, and Lines the newest
	// lines of the log, limited to what fits on a page.
	Flaws []model.ImportFlaw
	Lines []model.ImportLine
}

// mostOfImport limits the flaws and the lines on a page; the API returns all it keeps.
const mostOfImport = 100

// AllFlaws returns the number of flaws, including those that were only counted.
func (d importData) AllFlaws() int { return len(d.Errors) + d.ErrorsBeyond }

// MoreFlaws returns the number of flaws that are not on the page.
func (d importData) MoreFlaws() int { return d.AllFlaws() - len(d.Flaws) }

// Lag returns how far the new database is behind its source, 0 if unknown.
func (d importData) Lag() time.Duration {
	if d.Follow == nil || d.Follow.Lag == nil {
		return 0
	}
	return time.Duration(d.Follow.Lag.Seconds * float64(time.Second)).Round(time.Second)
}

// CutsOver reports whether the new database can be cut over.
func (d importData) CutsOver() bool { return d.Status == model.ImportFollowing }

// Took returns how long the import ran.
func (d importData) Took() time.Duration {
	if d.CompletedAt == nil {
		return 0
	}
	return d.CompletedAt.Sub(d.StartedAt)
}

func (req *request) importRecord(cause error) (answer, error) {
	record, err := req.engine.Imports.Get(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	data := importData{
		Import: record, Flaws: record.Errors[:min(len(record.Errors), mostOfImport)],
		Lines: record.Log[max(0, len(record.Log)-mostOfImport):],
	}
	if record.SecondsLeft != nil {
		data.Left = time.Duration(*record.SecondsLeft) * time.Second
	}
	return answer{page: "import.html", title: "Import of " + record.Name, data: data, live: !record.Status.Final()}, cause
}

// importCutover ends the following of an import.
func (req *request) importCutover() (answer, error) {
	record, err := req.engine.Imports.Get(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	if err := req.confirm(record.Name); err != nil {
		return answer{}, err
	}
	_, err = req.engine.Imports.Cutover(req.r.Context(), req.call, record.ID)
	return done(importPath(record.ID), "import_cut_over"), err
}

// importCancel cancels the operation of an import.
func (req *request) importCancel() (answer, error) {
	record, err := req.engine.Imports.Get(req.call, req.id())
	if err != nil {
		return answer{}, err
	}
	if err := req.confirm(record.Name); err != nil {
		return answer{}, err
	}
	if record.Status.Final() {
		return answer{}, model.Errorf(model.CodeConflict, "the import has ended already; delete the database itself, if it is not wanted")
	}
	return done(importPath(record.ID), "import_cancelled"), req.cancelRunning(record.Database, func(op *model.DatabaseOperation) bool { return op.Type == model.OperationImport })
}
