package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// put holds the flags of `object put`.
type put struct {
	recursive, noClobber bool
	contentType          string
	metadata, tags       []string
}

func newObjectPut(s *session) *cobra.Command {
	var in put
	cmd := s.command("put FILE… BUCKET[/KEY]", "Upload files", cobra.MinimumNArgs(2),
		func(t *task, args []string) error { return t.put(args[:len(args)-1], args[len(args)-1], in) })
	cmd.Long = "Upload files. A KEY that is empty or ends with a slash is a folder, in which files keep their names. With\n" +
		"--recursive, what is in a directory goes into the folder. The file - is standard input.\n" +
		"A file whose name cannot be a key is left out and named at the end, and the exit code is then 1.\n" +
		"An object is there as a whole or not at all, and what arrived is compared with what was sent."
	cmd.Example = "  holdfast object put notes.txt files\n  holdfast object put *.jpg files/photos/\n" +
		"  holdfast object put -r site/ public/\n  pg_dump … | holdfast object put - files/dump.sql"
	flags := cmd.Flags()
	flags.BoolVarP(&in.recursive, "recursive", "r", false, "upload what is in directories")
	flags.BoolVar(&in.noClobber, "no-clobber", false, "replace no object that is there")
	flags.StringVar(&in.contentType, "content-type", "", "the media type (default: by the file's ending)")
	flags.StringArrayVar(&in.metadata, "metadata", nil, "store metadata: NAME=VALUE (repeatable)")
	flags.StringArrayVar(&in.tags, "tag", nil, "store a tag: KEY=VALUE (repeatable)")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		words, _ := s.complete(objectNames)(cmd, nil, typed)
		return words, cobra.ShellCompDirectiveNoSpace
	}
	return cmd
}

// upload is a file and its key.
type upload struct {
	file string // "-" is standard input
	key  string
	size int64 // -1 if unknown
}

func (t *task) put(files []string, to string, in put) error {
	at, err := parseTarget(to)
	if err != nil {
		return err
	}
	uploads, err := planUploads(files, at.key, in.recursive, t.note)
	if err != nil {
		return err
	}
	bucket, err := t.bucket(at.bucket)
	if err != nil {
		return err
	}
	m := t.meter(countOf(uploads))
	m.expect(totalOf(uploads), "")
	done, err := inOrder(t, uploads, func(t *task, u upload) (result outcome[wire.Object], err error) {
		result.of, err = t.upload(m, bucket, u, in)
		if len(uploads) > 1 {
			err = aboutKey(u, err)
		}
		result.skipped, err = asSkipped(err)
		return result, err
	})
	m.stop()
	objects, skipped := split(done)
	if err == nil {
		err = skippedError("files", "upload each alone with its whole key", skipped)
	}
	return transferred(t, objects, err, func(o wire.Object) string {
		return fmt.Sprintf("uploaded %s/%s (%s)", at.bucket, o.Key, size(o.SizeBytes))
	})
}

func countOf(uploads []upload) string {
	if len(uploads) == 1 {
		return "uploading " + filepath.Base(uploads[0].file)
	}
	return fmt.Sprintf("uploading %d files", len(uploads))
}

// totalOf returns the total size, 0 if one size is unknown.
func totalOf(uploads []upload) int64 {
	total := int64(0)
	for _, u := range uploads {
		if u.size < 0 {
			return 0
		}
		total += u.size
	}
	return total
}

// planUploads chooses the key of every file. It passes what is left out to
// remark.
func planUploads(files []string, key string, recursive bool, remark func(string, ...any)) ([]upload, error) {
	inFolder := key == "" || strings.HasSuffix(key, "/")
	if len(files) > 1 && !inFolder {
		return nil, usagef("several files need a folder: let the key end with a slash, as in %s/", key)
	}
	var uploads []upload
	for _, file := range files {
		if file == "-" {
			if inFolder {
				return nil, usagef("standard input has no name: give the whole key, as in %sNAME", key)
			}
			uploads = append(uploads, upload{file, key, -1})
			continue
		}
		info, err := os.Stat(file)
		switch {
		case err != nil:
			return nil, usagef("%v", err)
		case info.IsDir() && !recursive:
			return nil, usagef("%s is a directory; --recursive uploads what is in it", file)
		case info.IsDir():
			inside, err := walkUploads(file, key, inFolder, remark)
			if err != nil {
				return nil, err
			}
			uploads = append(uploads, inside...)
		case inFolder:
			uploads = append(uploads, upload{file, key + filepath.Base(file), knownSize(info)})
		default:
			uploads = append(uploads, upload{file, key, knownSize(info)})
		}
	}
	if len(uploads) == 0 {
		return nil, usagef("there is no file in %s", strings.Join(files, ", "))
	}
	return uploads, oneForEach(uploads)
}

// oneForEach rejects two files with the same key.
func oneForEach(uploads []upload) error {
	of := map[string]string{}
	for _, u := range uploads {
		if other, taken := of[u.key]; taken {
			return usagef("%s and %s would both become the object %s", other, u.file, u.key)
		}
		of[u.key] = u.file
	}
	return nil
}

// knownSize returns the size of a file, -1 for pipes and devices.
func knownSize(info fs.FileInfo) int64 {
	if !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

func walkUploads(dir, key string, inFolder bool, remark func(string, ...any)) ([]upload, error) {
	if !inFolder {
		key += "/"
	}
	dir, err := filepath.EvalSymlinks(dir) // WalkDir does not follow a link
	if err != nil {
		return nil, usagef("%v", err)
	}
	var uploads []upload
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if isPartial(d.Name()) {
			remark("left out %s: it is part of a download", file)
			return nil
		}
		if !d.Type().IsRegular() {
			remark("left out %s: it is no regular file", file)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		within, err := filepath.Rel(dir, file)
		uploads = append(uploads, upload{file, key + filepath.ToSlash(within), info.Size()})
		return err
	})
	return uploads, err
}

// aboutKey turns the refusal of a key into an error that leaves the file out.
func aboutKey(u upload, err error) error {
	refusal, ok := errors.AsType[*client.Error](err)
	if ok && refusal.Code == wire.CodeValidation && strings.HasPrefix(refusal.Message, "key: ") {
		return &skippedName{u.file, refusal.Message}
	}
	return err
}

func (t *task) upload(m *meter, bucket string, u upload, in put) (wire.Object, error) {
	body := io.Reader(os.Stdin)
	if u.file != "-" {
		file, err := await(t.ctx, func() (*os.File, error) { return os.Open(u.file) }) // opening a pipe waits for its writer
		if err != nil {
			return wire.Object{}, err
		}
		defer file.Close()
		body = file
	}
	if u.size < 0 {
		body = Interruptible(t.ctx, body)
	}
	if u.size == 0 { // files in /proc report size 0
		u.size = -1
	}
	contentType := in.contentType
	if contentType == "" {
		contentType = mime.TypeByExtension(path.Ext(u.key))
	}
	metadata, err := parsePairs("metadata", in.metadata)
	if err != nil {
		return wire.Object{}, err
	}
	tags, err := parsePairs("tag", in.tags)
	if err != nil {
		return wire.Object{}, err
	}
	return t.api.UploadObject(t.ctx, bucket, client.Upload{
		Key: u.key, Body: metered{body, m}, Size: u.size, ContentType: contentType, IfAbsent: in.noClobber, Metadata: metadata, Tags: tags,
	})
}
