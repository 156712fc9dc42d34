package core

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// AllUnder returns every record of a table that belongs to the database.
func AllUnder[T any](table meta.Table[T], database string) ([]T, error) {
	return AllBy(table, meta.ByDatabase, meta.Key(database))
}

// AllBy returns every record of a table with key in the index.
func AllBy[T any](table meta.Table[T], index string, key []byte) ([]T, error) {
	const all = 1 << 30
	records, _, err := table.Newest(index, key, "", all)
	return records, err
}

// NameTaken turns ErrExists for a name into an error for the client.
func NameTaken(err error, t model.ResourceType, name string) error {
	if errors.Is(err, meta.ErrExists) {
		return model.Errorf(model.CodeConflict, "the %s %q exists already; choose another name", t, name)
	}
	return err
}

// ProjectOf returns the project with id if it belongs to the organization.
func ProjectOf(tx *meta.Tx, organization, id string) (model.Project, error) {
	project, err := tx.Projects().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && project.Organization != organization {
		return project, model.NotFound(model.ResourceProject, id)
	}
	return project, err
}
