package remote

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newTrash(s *session) *cobra.Command {
	return Group("trash", "Deleted databases, buckets and objects",
		newTrashList(s), newTrashBuckets(s), newTrashObjects(s), newTrashRestore(s), newTrashPurge(s), newTrashEmpty(s))
}

// trashOptions are the flags of the lists of databases and buckets.
func (t *task) trashOptions(name string) (client.TrashOptions, error) {
	project, err := t.projectFilter()
	return client.TrashOptions{Project: project, Name: name}, err
}

func newTrashList(s *session) *cobra.Command {
	var name string
	cmd := s.command("list", "Show the deleted databases", cobra.NoArgs, func(t *task, _ []string) error {
		o, err := t.trashOptions(name)
		if err != nil {
			return err
		}
		return list(t, t.api.TrashedDatabases(t.ctx, o), "there are no deleted databases", []string{"ID", "NAME", "DELETED", "RECOVERABLE UNTIL"},
			func(db wire.TrashedDatabase) []string {
				return []string{db.ID, db.Name, Ago(&db.DeletedAt), formatTime(&db.RecoverableUntil)}
			})
	})
	cmd.Flags().StringVar(&name, "name", "", "only those with this name")
	return cmd
}

func newTrashBuckets(s *session) *cobra.Command {
	var name string
	cmd := s.command("buckets", "Show the deleted buckets", cobra.NoArgs, func(t *task, _ []string) error {
		o, err := t.trashOptions(name)
		if err != nil {
			return err
		}
		return list(t, t.api.TrashedBuckets(t.ctx, o), "there are no deleted buckets", []string{"ID", "NAME", "OBJECTS", "SIZE", "DELETED"},
			func(b wire.TrashedBucket) []string {
				return []string{b.ID, b.Name, fmt.Sprint(b.ObjectCount), size(b.SizeBytes), Ago(&b.DeletedAt)}
			})
	})
	cmd.Flags().StringVar(&name, "name", "", "only those with this name")
	return cmd
}

func newTrashObjects(s *session) *cobra.Command {
	var o client.TrashObjectOptions
	cmd := s.command("objects", "Show the deleted objects", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, t.api.TrashedObjects(t.ctx, o), "there are no deleted objects", []string{"ID", "BUCKET", "KEY", "SIZE", "DELETED"},
			func(o wire.TrashedObject) []string {
				return []string{o.ID, o.BucketID, strconv.Quote(o.Key), size(o.SizeBytes), Ago(&o.DeletedAt)}
			})
	})
	cmd.Flags().StringVar(&o.BucketID, "bucket", "", "only those of the bucket with this id, which may be deleted too")
	cmd.Flags().StringVar(&o.Prefix, "prefix", "", "only those whose keys begin with this")
	return cmd
}

// purgeCall removes what an id in the trash names.
type purgeCall func(context.Context, string) (wire.DeletedRecord, error)

// byKind returns the function for what an id in the trash names: a database, a bucket, or the version of an object.
func byKind(id string, database, bucket, object purgeCall) purgeCall {
	switch {
	case isID(id, idDatabase):
		return database
	case isID(id, idBucket):
		return bucket
	default:
		return object
	}
}

// trashID returns what names something in the trash: an id as it is, or the id of the one deleted database or bucket with
// that name. The ids of objects have no prefix.
func (t *task) trashID(given string) (string, error) {
	if isID(given, idDatabase) || isID(given, idBucket) || isID(given, "") {
		return given, nil
	}
	o, err := t.trashOptions("")
	if err != nil {
		return "", err
	}
	databases, err := collect(t.api.TrashedDatabases(t.ctx, o))
	if err != nil {
		return "", err
	}
	buckets, err := collect(t.api.TrashedBuckets(t.ctx, o))
	if err != nil {
		return "", err
	}
	var all []named
	for _, db := range databases {
		all = append(all, named{id: db.ID, name: db.Name, project: db.Project})
	}
	for _, b := range buckets {
		all = append(all, named{id: b.ID, name: b.Name, project: b.Project})
	}
	found, err := pick("deleted database or bucket", given, all, func(n named) named { return n })
	return found.id, err
}

func newTrashRestore(s *session) *cobra.Command {
	cmd := s.command("restore ID", "Bring a deleted database, bucket or object back", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.trashID(args[0])
		if err != nil {
			return err
		}
		if isID(id, idBucket) {
			return shows(t, showRestoredBucket)(t.api.RestoreTrashedBucket(t.ctx, id))
		}
		restore := t.api.RestoreTrashedObject
		if isID(id, idDatabase) {
			restore = t.api.RestoreTrashedDatabase
		}
		return shows(t, func(w io.Writer, r wire.NamedReference) { fmt.Fprintf(w, "%s is back\n", r.Name) })(restore(t.ctx, id))
	})
	cmd.Long = "Bring a deleted database back with its backups, a bucket with its objects, or an object. ID is one that\n`trash list`, `trash buckets` or `trash objects` shows; a database or a bucket is found by its name too."
	return cmd
}

// ExpiryOff says what happened to a bucket that came back from the trash with objects that had expired.
const ExpiryOff = "its objects do not expire any more: some had reached the age of its rules and would be removed immediately"

func showRestoredBucket(w io.Writer, b wire.RestoredBucket) {
	fmt.Fprintf(w, "%s is back\n", b.Name)
	if b.ExpiryOff {
		fmt.Fprintln(w, ExpiryOff)
	}
}

func newTrashPurge(s *session) *cobra.Command {
	return s.command("purge ID", "Remove a deleted database, bucket or object for good", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.trashID(args[0])
		if err != nil {
			return err
		}
		if err := t.confirm("remove %s for good", args[0]); err != nil {
			return err
		}
		purge := byKind(id, t.api.PurgeTrashedDatabase, t.api.PurgeTrashedBucket, t.api.PurgeTrashedObject)
		return shows(t, func(w io.Writer, r wire.DeletedRecord) { fmt.Fprintf(w, "%s is gone\n", r.ID) })(purge(t.ctx, id))
	})
}

func newTrashEmpty(s *session) *cobra.Command {
	return s.command("empty", "Remove everything that was deleted for good: databases with their backups, buckets, objects", cobra.NoArgs,
		func(t *task, _ []string) error {
			if err := t.confirm("remove everything that was deleted for good: databases with their backups, buckets, objects"); err != nil {
				return err
			}
			return shows(t, func(w io.Writer, r wire.EmptiedTrash) {
				fmt.Fprintf(w, "removed: %d databases, %d buckets and %d objects\n", r.Databases, r.Buckets, r.Objects)
			})(t.api.EmptyTrash(t.ctx))
		})
}
