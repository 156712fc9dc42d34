package remote

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"holdfast/server/api/wire"
)

// The prefixes of ids.
const (
	idDatabase = "db_"
	idBackup   = "bkp_"
	idBucket   = "bucket_"
	idImport   = "imp_"
	idProject  = "proj_"
)

// isID reports whether text has the form of an id; a name may start like one.
func isID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && len(rest) == 26 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// named holds what identifies a record.
type named struct {
	id, name, project string
	note              string // shown with a completion
}

// find returns the one item of a kind ("database") with the given name, in the
// project that --project names or in any.
func find[T any](t *task, all iter.Seq2[T, error], kind, name string, look func(T) named) (T, error) {
	var found []T
	var names []string
	for item, err := range inProject(t, all, look) {
		if err != nil {
			return item, err
		}
		known := look(item)
		if names = append(names, known.name); known.name == name {
			found = append(found, item)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		var zero T
		return zero, unknownName(kind, name, names)
	default:
		return found[0], ambiguous(kind, name, found, look)
	}
}

// inProject filters a list by the project that --project names; without the
// flag it yields all.
func inProject[T any](t *task, all iter.Seq2[T, error], look func(T) named) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		project, err := t.projectFilter()
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		for item, err := range all {
			if (err != nil || project == "" || look(item).project == project) && !yield(item, err) {
				return
			}
		}
	}
}

func namedDatabase(db wire.Database) named {
	return named{id: db.ID, name: db.Name, project: db.Project}
}

func namedBucket(b wire.Bucket) named { return named{id: b.ID, name: b.Name, project: b.Project} }

func namedImport(i wire.Import) named { return named{id: i.ID, name: i.Name, project: i.Project} }

// shownNames is the maximum number of names in an error.
const shownNames = 8

func unknownName(kind, name string, names []string) error {
	if len(names) == 0 {
		return failf(exitNotFound, "there is no %s %q: there is none at all", kind, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	there := strings.Join(names[:min(len(names), shownNames)], ", ")
	if len(names) > shownNames {
		there += " and others"
	}
	return failf(exitNotFound, "there is no %s %q; there is %s", kind, name, there)
}

func ambiguous[T any](kind, name string, found []T, look func(T) named) error {
	var ids []string
	for _, item := range found {
		known := look(item)
		ids = append(ids, known.id+" in "+known.project)
	}
	return usagef("%q is ambiguous: %d %ss have this name (%s); say --project, or the id", name, len(found), kind, strings.Join(ids, ", "))
}

// database returns the database with the given id or name.
func (t *task) database(name string) (wire.Database, error) {
	if isID(name, idDatabase) {
		return t.api.GetDatabase(t.ctx, name)
	}
	return find(t, t.api.Databases(t.ctx), "database", name, namedDatabase)
}

// bucket returns the id of the bucket with the given id or name.
func (t *task) bucket(name string) (string, error) {
	if isID(name, idBucket) {
		return name, nil
	}
	b, err := find(t, t.api.Buckets(t.ctx), "bucket", name, namedBucket)
	return b.ID, err
}

// latest stands for the newest completed backup.
const latest = "latest"

// backup returns the backup with the given id, or the newest completed one.
func (t *task) backup(db wire.Database, name string) (wire.Backup, error) {
	if isID(name, idBackup) {
		return t.api.GetBackup(t.ctx, db.ID, name)
	}
	if name != latest {
		return wire.Backup{}, usagef("%q is neither the id of a backup nor %q; `holdfast backup list %s` shows them", name, latest, db.Name)
	}
	for b, err := range t.api.Backups(t.ctx, db.ID) {
		if err != nil || b.Status == wire.BackupCompleted {
			return b, err
		}
	}
	return wire.Backup{}, failf(exitNotFound, "the database %s has no completed backup; `holdfast backup create %s --wait` makes one", db.Name, db.Name)
}

// importID returns the id of the import with the given id or database name.
func (t *task) importID(name string) (string, error) {
	if isID(name, idImport) {
		return name, nil
	}
	i, err := find(t, t.api.Imports(t.ctx), "import", name, namedImport)
	return i.ID, err
}

// projectFilter returns the id of the project that --project names, "" without
// the flag.
func (t *task) projectFilter() (string, error) {
	name := flagOr(t.project, variableProject)
	if name == "" || isID(name, idProject) {
		return name, nil
	}
	status, err := t.api.GetAgentStatus(t.ctx)
	if err != nil {
		return "", err
	}
	return pickProject(status.Projects, name)
}

// projectForNew returns the id of the project for a new resource: the given
// one, else the profile's, else the only one.
func (t *task) projectForNew() (string, error) {
	name := cmp.Or(flagOr(t.project, variableProject), t.connection.project)
	if isID(name, idProject) {
		return name, nil
	}
	status, err := t.api.GetAgentStatus(t.ctx)
	if err != nil {
		return "", err
	}
	if name == "" && len(status.Projects) == 1 {
		return status.Projects[0].ID, nil
	}
	return pickProject(status.Projects, name)
}

func pickProject(projects []wire.Project, name string) (string, error) {
	var names []string
	for _, p := range projects {
		if p.Name == name {
			return p.ID, nil
		}
		names = append(names, p.Name)
	}
	if name == "" {
		return "", usagef("there are several projects: say --project with one of %s", strings.Join(names, ", "))
	}
	return "", unknownName("project", name, names)
}
