package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminTrash() *cobra.Command {
	list, l := newAdminCommand("list", "Show the deleted databases", model.ActionTrashList, cobra.NoArgs, nothing,
		func(w io.Writer, deleted []operator.TrashedDatabase) {
			table(w, "ID\tNAME\tDELETED\tRECOVERABLE UNTIL", func(w io.Writer) {
				for _, db := range deleted {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", db.ID, db.Name, when(db.DeletedAt), when(db.Until))
				}
			})
		})
	restore, r := newAdminCommand("restore ID", "Bring a deleted database back", model.ActionTrashRestore, cobra.ExactArgs(1), target,
		func(w io.Writer, db operator.TrashedDatabase) { fmt.Fprintf(w, "%s (%s) is back\n", db.ID, db.Name) })
	empty, e := newAdminCommand("empty", "Remove what one organization has deleted for good: databases with their backups, buckets, objects",
		model.ActionTrashEmpty, cobra.NoArgs, nothing,
		func(w io.Writer, removed operator.Removed) {
			fmt.Fprintf(w, "removed: %d databases, %d buckets and %d objects\n", removed.Databases, removed.Buckets, removed.Objects)
		})
	e.asking(empty, func([]string) string {
		return fmt.Sprintf("remove what the organization %s has deleted for good: databases with their backups, buckets, objects", e.org)
	})
	buckets, b := newAdminCommand("buckets", "Show the deleted buckets", model.ActionTrashBucketList, cobra.NoArgs, nothing,
		func(w io.Writer, deleted []operator.TrashedBucket) {
			table(w, "ID\tNAME\tOBJECTS\tDELETED", func(w io.Writer) {
				for _, bucket := range deleted {
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", bucket.ID, bucket.Name, bucket.ObjectCount, when(bucket.DeletedAt))
				}
			})
		})
	restoreBucket, rb := newAdminCommand("restore-bucket ID", "Bring a deleted bucket back with its objects", model.ActionTrashBucketRestore, cobra.ExactArgs(1), target,
		func(w io.Writer, bucket operator.TrashedBucket) {
			fmt.Fprintf(w, "%s (%s) is back with %d objects\n", bucket.ID, bucket.Name, bucket.ObjectCount)
		})
	objects, o := newAdminCommand("objects", "Show the deleted objects", model.ActionTrashObjectList, cobra.NoArgs, nothing,
		func(w io.Writer, deleted []operator.TrashedObject) {
			table(w, "ID\tBUCKET\tKEY\tDELETED", func(w io.Writer) {
				for _, object := range deleted {
					fmt.Fprintf(w, "%s\t%s\t%q\t%s\n", object.ID, object.Bucket, object.Key, when(object.DeletedAt))
				}
			})
		})
	restoreObject, ro := newAdminCommand("restore-object ID", "Bring a deleted object back", model.ActionTrashObjectRestore, cobra.ExactArgs(1), target,
		func(w io.Writer, object operator.TrashedObject) { fmt.Fprintf(w, "%q is back\n", object.Key) })
	return group("trash", "Deleted databases, buckets and objects", l.inOrganization(list), r.inOrganization(restore), e.inOrganization(empty),
		b.inOrganization(buckets), rb.inOrganization(restoreBucket), o.inOrganization(objects), ro.inOrganization(restoreObject))
}

func when(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format(time.DateTime)
}
