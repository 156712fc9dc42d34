package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminTrash() *cobra.Command {
	return group("trash", "Deleted databases, buckets and objects",
		newAdminCommand("list", "Show the deleted databases", model.ActionTrashList, cobra.NoArgs, nothing,
			rows("ID\tNAME\tDELETED\tRECOVERABLE UNTIL", func(db operator.TrashedDatabase) []any {
				return []any{db.ID, db.Name, when(db.DeletedAt), when(db.Until)}
			}), inOrganization),
		newAdminCommand("restore ID", "Bring a deleted database back", model.ActionTrashRestore, cobra.ExactArgs(1), target,
			func(w io.Writer, db operator.TrashedDatabase) { fmt.Fprintf(w, "%s (%s) is back\n", db.ID, db.Name) }, inOrganization),
		newAdminCommand("empty", "Remove what one organization has deleted for good: databases with their backups, buckets, objects",
			model.ActionTrashEmpty, cobra.NoArgs, nothing,
			func(w io.Writer, removed operator.Removed) {
				fmt.Fprintf(w, "removed: %d databases, %d buckets and %d objects\n", removed.Databases, removed.Buckets, removed.Objects)
			}, inOrganization, asking(func(a *admin, _ []string) string {
				return fmt.Sprintf("remove what the organization %s has deleted for good: databases with their backups, buckets, objects", a.org)
			})),
		newAdminCommand("buckets", "Show the deleted buckets", model.ActionTrashBucketList, cobra.NoArgs, nothing,
			rows("ID\tNAME\tOBJECTS\tDELETED", func(b operator.TrashedBucket) []any {
				return []any{b.ID, b.Name, b.ObjectCount, when(b.DeletedAt)}
			}), inOrganization),
		newAdminCommand("restore-bucket ID", "Bring a deleted bucket back with its objects", model.ActionTrashBucketRestore, cobra.ExactArgs(1), target,
			func(w io.Writer, b operator.RestoredBucket) {
				fmt.Fprintf(w, "%s (%s) is back with %d objects\n", b.ID, b.Name, b.ObjectCount)
				if b.ExpiryOff {
					fmt.Fprintln(w, remote.ExpiryOff)
				}
			}, inOrganization),
		newAdminCommand("objects", "Show the deleted objects", model.ActionTrashObjectList, cobra.NoArgs, nothing,
			rows("ID\tBUCKET\tKEY\tDELETED", func(o operator.TrashedObject) []any {
				return []any{o.ID, o.Bucket, strconv.Quote(o.Key), when(o.DeletedAt)}
			}), inOrganization),
		newAdminCommand("restore-object ID", "Bring a deleted object back", model.ActionTrashObjectRestore, cobra.ExactArgs(1), target,
			func(w io.Writer, o operator.TrashedObject) { fmt.Fprintf(w, "%q is back\n", o.Key) }, inOrganization))
}

func when(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format(time.DateTime)
}
