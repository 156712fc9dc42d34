package web

import (
	"holdfast/engine"
	"holdfast/engine/model"
)

// projectsData is what projects.html shows.
type projectsData struct {
	engine.List[model.Project]
	Name string // as it was typed
}

func (v *visit) projects() (answer, error) { return v.projectsPage("", nil) }

func (v *visit) projectsPage(name string, cause error) (answer, error) {
	list, err := v.engine.ProjectList(v.call, v.page())
	if cause != nil {
		err = cause
	}
	return answer{page: "projects.html", title: "Projects", data: projectsData{list, name}}, err
}

func (v *visit) projectCreate() (answer, error) {
	if _, err := v.engine.ProjectCreate(v.call, v.form("name")); err != nil {
		return v.projectsPage(v.form("name"), err)
	}
	return done("/projects", "project_created"), nil
}
