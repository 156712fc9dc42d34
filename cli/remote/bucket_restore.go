package remote

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newBucketHistory(s *session) *cobra.Command {
	cmd := s.command("history BUCKET", "Show to which moments a bucket can be brought back, and how far a restore is", cobra.ExactArgs(1),
		func(t *task, args []string) error {
			id, err := t.bucket(args[0])
			if err != nil {
				return err
			}
			return shows(t, bucketHistory)(t.api.GetBucketRestore(t.ctx, id))
		})
	return s.positions(cmd, bucketNames)
}

func bucketHistory(w io.Writer, h wire.BucketHistory) {
	since := cmp.Or(exactly(h.EarliestRestorableTime), "not at all: what is replaced or deleted is not kept")
	details(w, "can be brought back to", since)
	if h.Restore != nil {
		bucketRestore(w, *h.Restore)
	}
}

func bucketRestore(w io.Writer, r wire.BucketRestore) {
	details(w,
		"restore to", exactly(&r.TargetTime), "status", fmt.Sprintf("%s, %d%%", r.Status, r.ProgressPercent),
		"restored", fmt.Sprintf("%d (%s)", r.RestoredObjects, size(r.RestoredBytes)), "removed", fmt.Sprint(r.RemovedObjects),
		"unchanged", fmt.Sprint(r.UnchangedObjects), "skipped", fmt.Sprint(r.SkippedObjects), "error", text(r.Error))
}

func newBucketRestore(s *session) *cobra.Command {
	var at string
	var dryRun, wait bool
	cmd := s.command("restore BUCKET --to TIME", "Bring all objects of a bucket back to a moment", cobra.ExactArgs(1),
		func(t *task, args []string) error {
			target, err := timeOrAgo("to", at, time.Now())
			if err != nil {
				return err
			}
			if at == "" {
				return usagef("say to which moment, with --to")
			}
			id, err := t.bucket(args[0])
			if err != nil {
				return err
			}
			in := wire.RestoreBucket{TargetTime: target}
			if dryRun {
				in.DryRun = new(true)
				return shows(t, func(w io.Writer, r wire.BucketRestore) {
					bucketRestore(w, r)
					if r.Partial {
						t.note("these are the counts of the first keys only: the bucket has too many to plan all within 10 seconds")
					}
					t.note("nothing was changed")
				})(t.api.RestoreBucket(t.ctx, id, in))
			}
			if err := t.confirm("bring all objects in %s back to what they were at %s", args[0], exactly(&target)); err != nil {
				return err
			}
			r, err := t.api.RestoreBucket(t.ctx, id, in)
			return t.followBucket(args[0], id, r, err, wait)
		})
	cmd.Long = "Bring all objects of a bucket back to a moment: what was replaced or deleted since comes back, and what was made since\n" +
		"goes to the trash, or becomes an earlier version where the bucket keeps versions. A restore to the moment before it undoes it.\n" +
		"`holdfast bucket history` shows how far back the bucket goes."
	cmd.Example = "  holdfast bucket restore files --to 10m --dry-run\n  holdfast bucket restore files --to 2026-03-01T12:00:00Z --wait"
	cmd.Flags().StringVar(&at, "to", "", "the moment: RFC 3339 such as 2026-03-01T12:00:00Z, or how long ago, such as 10m")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be done, and do nothing")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is completed")
	return s.positions(cmd, bucketNames)
}

// followBucket shows a restore of a bucket that has started, and with wait how it ended.
func (t *task) followBucket(name, id string, r wire.BucketRestore, err error, wait bool) error {
	if err != nil {
		return err
	}
	act := "the restore of " + name
	if !wait {
		return t.show(r, func(w io.Writer) {
			fmt.Fprintf(w, "%s has begun\n", act)
			t.note("`holdfast bucket history %s` shows how far it is", name)
		})
	}
	m := t.meter(act)
	r, err = t.api.AwaitBucketRestore(t.ctx, id, func(r wire.BucketRestore) { m.percent(r.ProgressPercent, "") })
	m.stop()
	if err != nil {
		return err
	}
	if err := t.show(r, func(w io.Writer) {
		if r.Status == wire.BucketRestoreCompleted {
			fmt.Fprintf(w, "%s is completed: %d restored, %d removed, %d unchanged, %d skipped\n",
				act, r.RestoredObjects, r.RemovedObjects, r.UnchangedObjects, r.SkippedObjects)
		}
	}); err != nil {
		return err
	}
	if r.Status != wire.BucketRestoreCompleted {
		return failf(exitError, "%s failed: %s", act, text(r.Error))
	}
	return nil
}
