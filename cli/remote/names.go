package remote

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// The prefixes of ids.
const (
	idDatabase = "db_"
	idBackup   = "bkp_"
	idBucket   = "bucket_"
	idImport   = "imp_"
	idProject  = "proj_"
	idWebhook  = "wh_"
	idUser     = "user_"
	idKey      = "key_"
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
// project that --project names or in any. list returns the items that match a filter.
func find[T any](t *task, list func(client.Filter) iter.Seq2[T, error], kind, name string, look func(T) named) (T, error) {
	var zero T
	if err := refuseUnnamed(kind, name); err != nil {
		return zero, err
	}
	found, err := collect(selected(t, client.Filter{Name: name}, list))
	found = slices.DeleteFunc(found, func(item T) bool { return look(item).name != name })
	switch {
	case err != nil:
		return zero, err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return found[0], ambiguous(kind, name, found, look)
	}
	others, err := collect(selected(t, client.Filter{}, list))
	var names []string
	for _, item := range others {
		names = append(names, look(item).name)
	}
	if err != nil {
		return zero, err
	}
	return zero, unknownName(kind, name, names)
}

// refuseUnnamed refuses an argument that is empty, as one is in a script with a variable that is not set: a filter with an
// empty name selects everything.
func refuseUnnamed(kind, name string) error {
	if name == "" {
		return usagef("the argument that names the %s is empty: say its name or its id", kind)
	}
	return nil
}

// selected lists the items that match a filter in the project that --project names;
// without the flag, in all projects.
func selected[T any](t *task, filter client.Filter, list func(client.Filter) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		project, err := t.projectFilter()
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		filter.Project = project
		list(filter)(yield)
	}
}

func collect[T any](all iter.Seq2[T, error]) (items []T, err error) {
	for item, err := range all {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// databases lists the databases that match a filter, with any status if it is "".
func (t *task) databases(status string) func(client.Filter) iter.Seq2[wire.Database, error] {
	return func(f client.Filter) iter.Seq2[wire.Database, error] {
		return t.api.Databases(t.ctx, client.DatabaseOptions{Filter: f, Status: wire.DatabaseStatus(status)})
	}
}

// buckets lists the buckets that match a filter.
func (t *task) buckets(f client.Filter) iter.Seq2[wire.Bucket, error] {
	return t.api.Buckets(t.ctx, client.BucketOptions{Filter: f})
}

// imports lists the imports that match a filter, with any status if it is "".
func (t *task) imports(status string) func(client.Filter) iter.Seq2[wire.Import, error] {
	return func(f client.Filter) iter.Seq2[wire.Import, error] {
		return t.api.Imports(t.ctx, client.ImportOptions{Filter: f, Status: wire.ImportStatus(status)})
	}
}

// currentImports lists the imports that match a filter, without those in whose place another one of the same name in
// the same project is meant: after failed attempts, the one that did not fail, and else the last one.
func (t *task) currentImports(f client.Filter) iter.Seq2[wire.Import, error] {
	return func(yield func(wire.Import, error) bool) {
		all, err := collect(t.imports("")(f))
		if err != nil {
			yield(wire.Import{}, err)
			return
		}
		for _, i := range all {
			if !superseded(i, all) && !yield(i, nil) {
				return
			}
		}
	}
}

// superseded reports whether all has an import of the same name in the same project that is meant in place of i.
func superseded(i wire.Import, all []wire.Import) bool {
	return slices.ContainsFunc(all, func(other wire.Import) bool {
		if other.Name != i.Name || other.Project != i.Project {
			return false
		}
		if failed := i.Status == wire.ImportFailed; failed != (other.Status == wire.ImportFailed) {
			return failed
		}
		return other.ID > i.ID // ids are in the order of time
	})
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
	remedy := "say the id"
	for _, item := range found {
		known := look(item)
		if known.project != look(found[0]).project {
			remedy = "say --project, or the id"
		}
		if known.project != "" {
			known.id += " in " + known.project
		}
		ids = append(ids, known.id)
	}
	kinds := strings.ReplaceAll(kind, " or ", "s or ") + "s"
	return usagef("%q is ambiguous: %d %s have this name (%s); %s", name, len(found), kinds, strings.Join(ids, ", "), remedy)
}

// pick returns the one item with the given name.
func pick[T any](kind, name string, all []T, look func(T) named) (item T, err error) {
	if err := refuseUnnamed(kind, name); err != nil {
		return item, err
	}
	var names []string
	var found []T
	for _, item := range all {
		names = append(names, look(item).name)
		if look(item).name == name {
			found = append(found, item)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return item, unknownName(kind, name, names)
	default:
		return item, ambiguous(kind, name, found, look)
	}
}

// database returns the database with the given id or name.
func (t *task) database(name string) (wire.Database, error) {
	if isID(name, idDatabase) {
		return t.api.GetDatabase(t.ctx, name)
	}
	return find(t, t.databases(""), "database", name, namedDatabase)
}

// bucket returns the id of the bucket with the given id or name.
func (t *task) bucket(name string) (string, error) {
	if isID(name, idBucket) {
		return name, nil
	}
	b, err := find(t, t.buckets, "bucket", name, namedBucket)
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
	for b, err := range t.api.Backups(t.ctx, db.ID, client.BackupOptions{Status: wire.BackupCompleted}) {
		return b, err
	}
	return wire.Backup{}, failf(exitNotFound, "the database %s has no completed backup; `holdfast backup create %s --wait` makes one", db.Name, db.Name)
}

// importID returns the id of the import with the given id, or of the current one with the database name.
func (t *task) importID(name string) (string, error) {
	if isID(name, idImport) {
		return name, nil
	}
	i, err := find(t, t.currentImports, "import", name, namedImport)
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

// projectID returns the id of the project with the given id or name.
func (t *task) projectID(name string) (string, error) {
	if isID(name, idProject) {
		return name, nil
	}
	if err := refuseUnnamed("project", name); err != nil {
		return "", err
	}
	projects, err := collect(t.api.Projects(t.ctx, client.ProjectOptions{}))
	if err != nil {
		return "", err
	}
	return pickProject(projects, name)
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
