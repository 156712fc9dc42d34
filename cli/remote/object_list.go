package remote

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newObject(s *session) *cobra.Command {
	return Group("object", "Objects in buckets", newObjectList(s), newObjectPut(s), newObjectGet(s), newObjectShow(s),
		newObjectUpdate(s), newObjectCopy(s), newObjectVersions(s), newObjectLink(s), newObjectDelete(s))
}

// wildcards explains key patterns, for the help of commands that accept them.
const wildcards = "* in a key is any characters but a slash, ** any characters, ? one; a backslash before one takes it at\n" +
	"its word. Put such keys in quotes, or the shell takes them for files."

func newObjectList(s *session) *cobra.Command {
	var recursive bool
	cmd := s.command("list BUCKET[/PREFIX]", "Show the objects and folders in a bucket", cobra.ExactArgs(1),
		func(t *task, args []string) error {
			bucket, key, err := t.objects(args[0])
			if err != nil {
				return err
			}
			p := parsePattern(key)
			if !recursive && !p.wild && !t.json {
				return t.listLevel(bucket, p.prefix)
			}
			return t.listAll(bucket, p)
		})
	cmd.Long = "Show the objects whose keys begin with PREFIX, those beyond a slash as folders.\n" + wildcards
	cmd.Example = "  holdfast object list files/photos/\n  holdfast object list 'files/**.jpg'"
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "show the objects in folders too, in the order of keys; so does --json")
	return s.positions(cmd, objectNames)
}

func (t *task) listLevel(bucket, prefix string) error {
	rows := [][]string{}
	for e, err := range t.api.Entries(t.ctx, bucket, prefix) {
		if err != nil {
			return err
		}
		row := []string{"", "", e.Name}
		if e.Object != nil {
			row[0], row[1] = size(e.Object.SizeBytes), formatTime(&e.Object.LastModified)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[2], b[2]) })
	return t.table(whole(), nil, "there are no objects here; `holdfast object put` puts one", []string{"SIZE", "CHANGED", "KEY"}, rows)
}

// matching iterates over the objects that match a pattern or, without
// wildcards, begin with it.
func (t *task) matching(bucket string, p pattern) iter.Seq2[wire.Object, error] {
	return func(yield func(wire.Object, error) bool) {
		for o, err := range t.api.Objects(t.ctx, bucket, p.prefix) {
			if err == nil && p.wild && !p.matches(o.Key) {
				continue
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// listAll prints objects as they arrive: there may be any number.
func (t *task) listAll(bucket string, p pattern) error {
	out, n := t.cmd.OutOrStdout(), 0
	for o, err := range t.matching(bucket, p) {
		if err != nil {
			return err
		}
		if err := t.printObject(out, o, n); err != nil {
			return err
		}
		n++
	}
	if t.json {
		return t.endObjects(out, n)
	}
	if n == 0 {
		t.note("there is no such object")
	}
	return nil
}

// endObjects ends a JSON list of n objects.
func (t *task) endObjects(out io.Writer, n int) error {
	begin, end := "", "\n  ]"
	if n == 0 {
		begin, end = objectsBegin, "]"
	}
	meta := whole()
	meta["common_prefixes"] = []string{}
	var text bytes.Buffer
	if err := encodeJSON(&text, t.meta(meta), "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s%s,\n  \"meta\": %s}\n", begin, end, text.String())
	return err
}

// objectsBegin starts a JSON list of objects.
const objectsBegin = "{\n  \"data\": ["

// printObject prints the n-th object of a list.
func (t *task) printObject(out io.Writer, o wire.Object, n int) error {
	if !t.json {
		_, err := fmt.Fprintf(out, "%8s  %s  %s\n", size(o.SizeBytes), formatTime(&o.LastModified), printable(o.Key))
		return err
	}
	var text bytes.Buffer
	if err := encodeJSON(&text, o, "    "); err != nil {
		return err
	}
	separator := ",\n    "
	if n == 0 {
		separator = objectsBegin + "\n    "
	}
	_, err := fmt.Fprint(out, separator+strings.TrimSuffix(text.String(), "\n"))
	return err
}
