package web

import (
	"cmp"

	"holdfast/engine/databases"
)

// extensionsData is what database_extensions.html shows.
type extensionsData struct {
	databaseData
	Installed, Possible, Refused []databases.ExtensionView
}

func (req *request) extensions(db databaseData, cause error) (answer, error) {
	if req.letsSleep(db) {
		return answer{page: "database_extensions.html", data: extensionsData{databaseData: db}}, cause
	}
	all, err := req.engine.Databases.ExtensionList(req.r.Context(), req.call, db.ID)
	data := extensionsData{databaseData: db}
	for _, x := range all {
		switch {
		case x.Installed != "":
			data.Installed = append(data.Installed, x)
		case x.Reason == "":
			data.Possible = append(data.Possible, x)
		default:
			data.Refused = append(data.Refused, x)
		}
	}
	return answer{page: "database_extensions.html", data: data}, cmp.Or(cause, err)
}

func (req *request) extensionSet() (answer, error) {
	change := databases.ExtensionChange{Name: req.form("name"), Restart: req.form("restart") == "true"}
	_, err := req.engine.Databases.ExtensionSet(req.r.Context(), req.call, req.id(), change)
	return done(req.databasePath("extensions"), "extension"), err
}

func (req *request) extensionDelete() (answer, error) {
	err := req.confirm(req.form("name"))
	if err == nil {
		err = req.engine.Databases.ExtensionDelete(req.r.Context(), req.call, req.id(), req.form("name"))
	}
	return done(req.databasePath("extensions"), "extension_dropped"), err
}
