package web

import (
	"cmp"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// projectsData is what projects.html shows.
type projectsData struct {
	core.List[model.Project]
	Name string // as typed
}

func (req *request) projects(cause error) (answer, error) {
	typed := ""
	if req.id() == "" { // not the name in the form that renames a project
		typed = req.form("name")
	}
	list, err := req.engine.Access.ProjectList(req.call, core.Filter{}, req.page())
	return answer{page: "projects.html", title: "Projects", data: projectsData{list, typed}}, cmp.Or(cause, err)
}

func (req *request) projectCreate() (answer, error) {
	_, err := req.engine.Access.ProjectCreate(req.call, req.form("name"))
	return done("/projects", "project_created"), err
}

func (req *request) projectRename() (answer, error) {
	_, err := req.engine.Access.ProjectRename(req.call, req.id(), req.form("name"))
	return done("/projects", "project_renamed"), err
}

func (req *request) projectDelete() (answer, error) {
	err := req.engine.Access.ProjectDelete(req.call, req.id())
	return done("/projects", "project_deleted"), err
}
