package remote

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
)

func newBucket(s *session) *cobra.Command {
	return Group("bucket", "Buckets of objects", newBucketList(s), newBucketCreate(s), newBucketDelete(s))
}

func newBucketList(s *session) *cobra.Command {
	return s.command("list", "Show the buckets", cobra.NoArgs, func(t *task, _ []string) error {
		project, err := t.projectFilter()
		if err != nil {
			return err
		}
		buckets, rows := []client.Bucket{}, [][]string{}
		for b, err := range t.api.Buckets(t.ctx) {
			if err != nil {
				return err
			}
			if project == "" || b.Project == project {
				buckets = append(buckets, b)
				rows = append(rows, []string{b.Name, b.ID, fmt.Sprint(b.ObjectCount), size(b.SizeBytes), yesNo(b.Public), ago(&b.CreatedAt)})
			}
		}
		return t.list(buckets, "there are no buckets; `holdfast bucket create NAME` makes one",
			[]string{"NAME", "ID", "OBJECTS", "SIZE", "PUBLIC", "CREATED"}, rows)
	})
}

func newBucketCreate(s *session) *cobra.Command {
	var public bool
	cmd := s.command("create NAME", "Make a bucket", cobra.ExactArgs(1), func(t *task, args []string) error {
		project, err := t.projectForNew()
		if err != nil {
			return err
		}
		b, err := t.api.CreateBucket(t.ctx, client.CreateBucket{Project: project, Name: args[0], Public: public})
		if err != nil {
			return err
		}
		return t.show(b, func(w io.Writer) {
			fmt.Fprintf(w, "created %s (%s)\n", b.Name, b.ID)
			if b.PublicURL != nil {
				fmt.Fprintf(w, "anybody can download from %s\n", *b.PublicURL)
			}
		})
	})
	cmd.Flags().BoolVar(&public, "public", false, "let anybody download its objects")
	return cmd
}

func newBucketDelete(s *session) *cobra.Command {
	var force bool
	cmd := s.command("delete BUCKET", "Delete a bucket", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.bucket(args[0])
		if err != nil {
			return err
		}
		what := "delete the bucket " + args[0]
		if force {
			what += " with all objects in it"
		}
		if err := t.confirm("%s", what); err != nil {
			return err
		}
		deleted, err := t.api.DeleteBucket(t.ctx, id, force)
		if client.CodeOf(err) == client.CodeConflict && !force {
			return failf(exitConflict, "%v; --force deletes them with it", err)
		}
		if err != nil {
			return err
		}
		return t.show(deleted, func(w io.Writer) { fmt.Fprintf(w, "deleted %s\n", args[0]) })
	})
	cmd.Flags().BoolVar(&force, "force", false, "delete the objects in it too")
	return s.positions(cmd, bucketNames)
}
