package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// get holds the flags of `object get`.
type get struct{ recursive, noClobber bool }

func newObjectGet(s *session) *cobra.Command {
	var in get
	cmd := s.command("get BUCKET/KEY [FILE|DIRECTORY|-]", "Download objects", cobra.RangeArgs(1, 2),
		func(t *task, args []string) error {
			to := ""
			if len(args) > 1 {
				to = args[1]
			}
			return t.get(args[0], to, in)
		})
	cmd.Long = "Download an object into a file, into a directory under its own name, or with - to standard output; what is\n" +
		"there and is no file, such as a named pipe, is written into.\n" +
		"With --recursive all objects whose keys begin with KEY, and with wildcards all that match, go into a directory,\n" +
		"folders and all. " + wildcards + "\n" +
		"An object whose key cannot be the name of a file there is left out and named at the end, and the exit code is then 1.\n\n" +
		"What arrived is compared with what was uploaded, and takes its name only then. A download that was broken off\n" +
		"goes on where it stopped when it is asked for again."
	cmd.Example = "  holdfast object get files/notes.txt\n  holdfast object get files/dump.sql - | psql …\n" +
		"  holdfast object get -r files/photos/ backup/\n  holdfast object get 'files/photos/*.jpg' ."
	cmd.Flags().BoolVarP(&in.recursive, "recursive", "r", false, "download all objects whose keys begin with KEY")
	cmd.Flags().BoolVar(&in.noClobber, "no-clobber", false, "replace no file that is there")
	return s.positions(cmd, objectNames, nil)
}

func (t *task) get(from, to string, in get) error {
	at, err := parseTarget(from)
	if err != nil {
		return err
	}
	p := parsePattern(at.key)
	if p.prefix == "" && !p.wild && !in.recursive {
		return usagef("%q names no object; --recursive downloads all of the bucket", from)
	}
	bucket, err := t.bucket(at.bucket)
	if err != nil {
		return err
	}
	if p.wild || in.recursive {
		return t.getMany(bucket, from, p, to, in)
	}
	o, err := t.api.GetObject(t.ctx, bucket, p.prefix, "")
	if err != nil {
		return err
	}
	if isStream(to) {
		m := t.meter("downloading " + path.Base(o.Key))
		m.expect(o.SizeBytes, "")
		defer m.stop()
		return t.stream(t.objectSource(bucket, o), to, m)
	}
	dir, name, err := destinationOf(o.Key, to)
	if err != nil {
		return err
	}
	results, skipped, err := t.getInto(dir, bucket, []destination{{o, name}}, in)
	if len(skipped) > 0 {
		err = skipped[0]
	}
	return t.showSaved(results, err)
}

// destination is an object and its file, relative to a directory.
type destination struct {
	object wire.Object
	name   string
}

// saved is the result of downloading an object.
type saved struct {
	wire.Object
	File string `json:"file"`
}

// destinationOf returns the directory and file name for one object.
func destinationOf(key, to string) (dir, name string, err error) {
	if info, err := os.Stat(to); to == "" || err == nil && info.IsDir() {
		name, err := fileName(path.Base(key))
		if err != nil || strings.HasSuffix(key, "/") {
			return "", "", usagef("the key %q is no file's name: say which file it is to be", key)
		}
		return orHere(to), name, nil
	}
	if strings.HasSuffix(to, string(filepath.Separator)) {
		return "", "", usagef("there is no directory %s", to)
	}
	if _, err := os.Lstat(to); err == nil { // write the link's target, not the link
		if to, err = filepath.EvalSymlinks(to); err != nil {
			return "", "", usagef("%v", err)
		}
	}
	return filepath.Dir(to), filepath.Base(to), nil
}

func orHere(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// fileName returns the file name of a key, below a directory. Other keys are
// unfit: the appliance must not decide where files go.
func fileName(key string) (string, error) {
	name := filepath.FromSlash(key)
	if !filepath.IsLocal(name) || filepath.Clean(name) != name || name == "." {
		return "", &skippedName{key, noName}
	}
	return name, nil
}

const noName = "is not the name of a file below a directory"

// destinations chooses the file of each object. An object cannot be a file where
// others need a directory.
func destinations(objects []wire.Object, folder string) (all []destination, skipped []*skippedName) {
	directories := map[string]bool{}
	for _, o := range objects {
		name, err := fileName(strings.TrimPrefix(o.Key, folder))
		if err != nil {
			skipped = append(skipped, &skippedName{o.Key, noName})
			continue
		}
		all = append(all, destination{o, name})
		for dir := filepath.Dir(name); dir != "." && !directories[dir]; dir = filepath.Dir(dir) {
			directories[dir] = true
		}
	}
	fit := all[:0]
	for _, p := range all {
		if directories[p.name] {
			skipped = append(skipped, &skippedName{p.object.Key, "other objects need a directory of that name"})
			continue
		}
		fit = append(fit, p)
	}
	return fit, skipped
}

func (t *task) getMany(bucket, from string, p pattern, to string, in get) error {
	if to == "-" {
		return usagef("several objects do not go to standard output; name a directory")
	}
	var objects []wire.Object
	for o, err := range t.matching(bucket, p) {
		if err != nil {
			return err
		}
		if strings.HasSuffix(o.Key, "/") && o.SizeBytes == 0 {
			continue // a folder marker of another program
		}
		objects = append(objects, o)
	}
	if len(objects) == 0 {
		return failf(exitNotFound, "there is no object %s", from)
	}
	all, skipped := destinations(objects, p.folder())
	if err := os.MkdirAll(orHere(to), 0o777); err != nil {
		return err
	}
	results, more, err := t.getInto(orHere(to), bucket, all, in)
	if err == nil {
		err = skippedError("objects", "download each alone and name the file to write", append(skipped, more...))
	}
	return t.showSaved(results, err)
}

// getInto downloads objects into a directory and nowhere else.
func (t *task) getInto(dir, bucket string, all []destination, in get) (results []saved, skipped []*skippedName, err error) {
	if len(all) == 0 {
		return nil, nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	defer root.Close()
	label, total := "downloading "+path.Base(all[0].object.Key), int64(0)
	if len(all) > 1 {
		label = fmt.Sprintf("downloading %d objects", len(all))
	}
	for _, p := range all {
		total += p.object.SizeBytes
		if _, err := root.Lstat(p.name); err == nil && in.noClobber {
			return nil, nil, failf(exitConflict, "%s is there already, and is not replaced", filepath.Join(dir, p.name))
		}
	}
	if err := t.forgetOlder(root, bucket, all); err != nil {
		return nil, nil, err
	}
	m := t.meter(label)
	m.expect(total, "")
	done, err := inOrder(t, all, func(t *task, p destination) (result outcome[saved], err error) {
		result.of = saved{p.object, filepath.Join(dir, p.name)}
		result.skipped, err = asSkipped(t.saveAt(root, p, t.objectSource(bucket, p.object), m))
		return result, err
	})
	m.stop()
	results, skipped = split(done)
	return results, skipped, err
}

// saveAt downloads an object into its file and creates the directories it
// needs.
func (t *task) saveAt(root *os.Root, p destination, src downloadSource, m *meter) error {
	err := root.MkdirAll(filepath.Dir(p.name), 0o777)
	if err == nil {
		_, err = root.Lstat(p.name)
	}
	if aboutName(err) {
		return &skippedName{p.object.Key, whyName(err)}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.save(root, p.name, src, m)
}

func (t *task) showSaved(results []saved, err error) error {
	return transferred(t, results, err, func(s saved) string { return fmt.Sprintf("%s (%s)", s.File, size(s.SizeBytes)) })
}

// forgetOlder removes partial downloads of other versions from the target
// directories.
func (t *task) forgetOlder(root *os.Root, bucket string, all []destination) error {
	sources := map[string][]downloadSource{}
	for _, p := range all {
		dir := filepath.Dir(p.name)
		sources[dir] = append(sources[dir], t.objectSource(bucket, p.object))
	}
	for dir, into := range sources {
		if err := removeOutdated(root, dir, into); err != nil {
			return err
		}
	}
	return nil
}

// objectSource returns the download of an object.
func (t *task) objectSource(bucket string, o wire.Object) downloadSource {
	return downloadSource{
		name: o.Key, id: bucket + " " + o.Key, etag: o.ETag, size: o.SizeBytes,
		sum: func() checksum { return client.NewCRC32C() }, want: o.ChecksumCRC32C,
		url: func() (string, error) {
			again, err := t.api.GetObject(t.ctx, bucket, o.Key, "")
			return text(again.DownloadURL), err
		},
	}
}
