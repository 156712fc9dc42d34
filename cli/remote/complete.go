package remote

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// completionTime is how long a shell waits for names.
const completionTime = 3 * time.Second

// maxCompletions is the maximum number of completions offered.
const maxCompletions = 200

// completion is the function that cobra calls for completions.
type completion = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// source yields completions for typed, with descriptions.
type source func(t *task, args []string, typed string) iter.Seq2[named, error]

// complete offers names from a source, and ids once the start of one is typed.
// If the appliance does not answer, it offers nothing.
func (s *session) complete(from source) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		t := &task{session: s, cmd: cmd, ctx: ctx}
		if t.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []cobra.Completion
		for item, err := range from(t, args, typed) {
			if err != nil || len(words) == maxCompletions {
				break
			}
			switch {
			case item.name != "" && strings.HasPrefix(item.name, typed):
				words = append(words, cobra.CompletionWithDesc(item.name, cmp.Or(item.note, item.id)))
			case strings.HasPrefix(item.id, typed):
				words = append(words, cobra.CompletionWithDesc(item.id, cmp.Or(item.note, item.name)))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// flagWords completes the values of a flag.
func flagWords(cmd *cobra.Command, flag string, words completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic(err) // the command has no such flag
	}
}

// positions completes each argument from the source at its position; nil means
// a file name.
func (s *session) positions(cmd *cobra.Command, sources ...source) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(sources) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if from := sources[len(args)]; from != nil {
			return s.complete(from)(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	return cmd
}

// each maps records to completions.
func each[T any](all iter.Seq2[T, error], look func(T) named) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		for item, err := range all {
			if !yield(look(item), err) {
				return
			}
		}
	}
}

func databaseNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return each(t.api.Databases(t.ctx, client.DatabaseOptions{}), namedDatabase)
}

func bucketNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return each(t.api.Buckets(t.ctx, client.BucketOptions{}), namedBucket)
}

func importNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return each(t.api.Imports(t.ctx, client.ImportOptions{}), namedImport)
}

// backupNames yields the backups of the database argument. A backup has no
// name, so its type, status and age accompany its id.
func backupNames(t *task, args []string, _ string) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		db, err := t.database(args[0])
		if err != nil || !yield(named{name: latest, note: "the newest completed backup"}, nil) {
			return
		}
		for b, err := range t.api.Backups(t.ctx, db.ID, client.BackupOptions{}) {
			if !yield(named{id: b.ID, note: string(b.Type) + ", " + string(b.Status) + ", " + Ago(&b.StartedAt)}, err) {
				return
			}
		}
	}
}

func projectNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return func(yield func(named, error) bool) {
		status, err := t.api.GetAgentStatus(t.ctx)
		for _, p := range status.Projects {
			if err != nil || !yield(named{id: p.ID, name: p.Name}, nil) {
				return
			}
		}
	}
}

// objectNames yields buckets and, after a slash, the keys in a bucket.
func objectNames(t *task, _ []string, typed string) iter.Seq2[named, error] {
	name, prefix, inside := strings.Cut(typed, "/")
	if !inside {
		return each(t.api.Buckets(t.ctx, client.BucketOptions{}), func(b wire.Bucket) named { return named{id: b.ID + "/", name: b.Name + "/"} })
	}
	return func(yield func(named, error) bool) {
		bucket, err := t.bucket(name)
		if err != nil {
			return
		}
		for entry, err := range t.api.Entries(t.ctx, bucket, prefix) {
			if !yield(named{name: name + "/" + entry.Name}, err) {
				return
			}
		}
	}
}

func completeProfiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, _ := listProfiles()
	return names, cobra.ShellCompDirectiveNoFileComp
}
