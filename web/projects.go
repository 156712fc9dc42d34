package web

import (
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// projectsData is what projects.html shows.
type projectsData struct {
	core.List[model.Project]
	Name string // as it was typed
}

func (req *request) projects() (answer, error) { return req.projectsPage("", nil) }

func (req *request) projectsPage(name string, cause error) (answer, error) {
	list, err := req.engine.Access.ProjectList(req.call, req.page())
	if cause != nil {
		err = cause
	}
	return answer{page: "projects.html", title: "Projects", data: projectsData{list, name}}, err
}

func (req *request) projectCreate() (answer, error) {
	if _, err := req.engine.Access.ProjectCreate(req.call, req.form("name")); err != nil {
		return req.projectsPage(req.form("name"), err)
	}
	return done("/projects", "project_created"), nil
}
