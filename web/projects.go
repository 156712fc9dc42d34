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
	list, err := req.engine.Access.ProjectList(req.call, req.page())
	return answer{page: "projects.html", title: "Projects", data: projectsData{list, req.form("name")}}, cmp.Or(cause, err)
}

func (req *request) projectCreate() (answer, error) {
	_, err := req.engine.Access.ProjectCreate(req.call, req.form("name"))
	return done("/projects", "project_created"), err
}
