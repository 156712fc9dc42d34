package remote

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newObjectDelete(s *session) *cobra.Command {
	var recursive bool
	var version string
	cmd := s.command("delete BUCKET/KEY…", "Delete objects", cobra.MinimumNArgs(1), func(t *task, args []string) error {
		if !t.cmd.Flags().Changed("version") {
			return t.deleteObjects(args, recursive)
		}
		if recursive || len(args) != 1 {
			return usagef("--version is for one object")
		}
		if version == "" {
			return usagef("--version is empty: say one that `holdfast object versions` shows")
		}
		return t.deleteVersion(args[0], version)
	})
	cmd.Long = "Delete objects. With --recursive all whose keys begin with KEY.\n" + wildcards
	cmd.Example = "  holdfast object delete files/notes.txt\n  holdfast object delete 'files/tmp/**'"
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "delete all objects whose keys begin with KEY")
	cmd.Flags().StringVar(&version, "version", "", "remove this version for good; \"holdfast object versions\" shows them")
	cmd.ValidArgsFunction = s.complete(objectNames)
	return cmd
}

func (t *task) deleteVersion(arg, version string) error {
	bucket, key, err := t.object(arg)
	if err != nil {
		return err
	}
	if err := t.confirm("remove the version %s of %s", version, arg); err != nil {
		return err
	}
	deleted, err := t.api.DeleteObjectByQuery(t.ctx, bucket, key, version)
	if err != nil {
		return err
	}
	return t.show(deleted, func(w io.Writer) {
		fmt.Fprintf(w, "removed %s\n", version)
		t.remarkRecoverable(deleted.Recoverable, "objects")
	})
}

// namedObject is an object to delete.
type namedObject struct{ bucketName, bucket, key string }

func (t *task) deleteObjects(args []string, recursive bool) error {
	var all []namedObject
	for _, arg := range args {
		found, err := t.objectsNamed(arg, recursive)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	what := fmt.Sprintf("delete %d objects", len(all))
	if len(all) == 1 {
		what = "delete " + all[0].bucketName + "/" + all[0].key
	}
	if err := t.confirm("%s", what); err != nil {
		return err
	}
	m := t.meter(what)
	deleted, err := inOrder(t, all, func(t *task, d namedObject) (wire.DeletedObject, error) {
		return t.api.DeleteObjectByQuery(t.ctx, d.bucket, d.key, "")
	})
	m.stop()
	if len(deleted) > 0 {
		t.remarkRecoverable(deleted[0].Recoverable, "objects") // the first one's retention ends first
	}
	return transferred(t, deleted, err, func(d wire.DeletedObject) string { return "deleted " + d.Key })
}

// objectsNamed finds the objects that an argument names.
func (t *task) objectsNamed(arg string, recursive bool) ([]namedObject, error) {
	at, err := parseTarget(arg)
	if err != nil {
		return nil, err
	}
	p := parsePattern(at.key)
	if p.prefix == "" && !p.wild && !recursive {
		return nil, usagef("%q names no object; `holdfast bucket delete --force` deletes a bucket with all that is in it", arg)
	}
	bucket, err := t.bucket(at.bucket)
	if err != nil {
		return nil, err
	}
	if !p.wild && !recursive {
		_, err := t.api.GetObject(t.ctx, bucket, p.prefix, "")
		return []namedObject{{at.bucket, bucket, p.prefix}}, err
	}
	var found []namedObject
	for o, err := range t.matching(bucket, p) {
		if err != nil {
			return nil, err
		}
		found = append(found, namedObject{at.bucket, bucket, o.Key})
	}
	if len(found) == 0 {
		return nil, failf(exitNotFound, "there is no object %s", arg)
	}
	return found, nil
}
