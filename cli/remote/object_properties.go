package remote

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

// object finds the object that an argument names.
func (t *task) object(arg string) (bucket, key string, err error) {
	at, err := parseTarget(arg)
	if err == nil && at.key == "" {
		err = usagef("%q is not BUCKET/KEY", arg)
	}
	if err != nil {
		return "", "", err
	}
	bucket, err = t.bucket(at.bucket)
	return bucket, at.key, err
}

// objects finds the bucket that an argument names, and what the keys in question begin with.
func (t *task) objects(arg string) (bucket, prefix string, err error) {
	at, err := parseTarget(arg)
	if err != nil {
		return "", "", err
	}
	bucket, err = t.bucket(at.bucket)
	return bucket, at.key, err
}

const versionFlag = "the version (default: the current one); `holdfast object versions` shows them"

func newObjectShow(s *session) *cobra.Command {
	var version string
	cmd := s.command("show BUCKET/KEY", "Show what is stored with an object", cobra.ExactArgs(1), func(t *task, args []string) error {
		bucket, key, err := t.object(args[0])
		if err != nil {
			return err
		}
		return shows(t, objectDetails)(t.api.GetObject(t.ctx, bucket, key, version))
	})
	cmd.Flags().StringVar(&version, "version", "", versionFlag)
	return s.positions(cmd, objectNames)
}

func objectDetails(w io.Writer, o wire.Object) {
	kept := ""
	if o.Retention != nil {
		kept = fmt.Sprintf("until %s (%s)", formatTime(&o.Retention.Until), o.Retention.Mode)
	}
	details(w,
		"key", o.Key, "size", size(o.SizeBytes), "content type", o.ContentType, "changed", formatTime(&o.LastModified), "version", o.VersionID,
		"metadata", pairs(o.Metadata), "tags", pairs(o.Tags), "cache control", text(o.CacheControl), "disposition", text(o.Disposition),
		"retained", kept, "legal hold", yesNo(o.LegalHold), "CRC-32C", o.ChecksumCRC32C, "SHA-256", text(o.ChecksumSHA256), "public URL", text(o.PublicURL))
}

// pairs shows metadata or tags.
func pairs(of map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, name+"="+of[name])
	}
	return strings.Join(all, ", ")
}

// parsePairs parses the values of a flag, nil if it was not given. An empty value adds nothing.
func parsePairs(flag string, values []string) (map[string]string, error) {
	if values == nil {
		return nil, nil
	}
	all := map[string]string{}
	for _, value := range values {
		name, content, ok := strings.Cut(value, "=")
		switch {
		case value == "":
		case !ok || name == "":
			return nil, usagef("--%s %s is not NAME=VALUE", flag, value)
		default:
			all[name] = content
		}
	}
	return all, nil
}

func newObjectUpdate(s *session) *cobra.Command {
	var version string
	var metadata, tags []string
	var contentType, cacheControl, disposition string
	var lock lockFlags
	cmd := s.command("update BUCKET/KEY", "Change what is stored with an object", cobra.ExactArgs(1), func(t *task, args []string) error {
		var in wire.UpdateObject
		given := t.cmd.Flags().Changed
		var err error
		if in.Metadata, err = parsePairs("metadata", metadata); err != nil {
			return err
		}
		if in.Tags, err = parsePairs("tag", tags); err != nil {
			return err
		}
		for name, to := range map[string]**string{"content-type": &in.ContentType, "cache-control": &in.CacheControl, "content-disposition": &in.Disposition} {
			if given(name) {
				*to = map[string]*string{"content-type": &contentType, "cache-control": &cacheControl, "content-disposition": &disposition}[name]
			}
		}
		if err := lock.set(t.cmd.Flags().Changed, &in); err != nil {
			return err
		}
		if reflect.ValueOf(in).IsZero() {
			return usagef("say what is to change: --metadata, --tag, --content-type, --cache-control, --content-disposition, --retain-until or --legal-hold")
		}
		bucket, key, err := t.object(args[0])
		if err != nil {
			return err
		}
		return shows(t, objectDetails)(t.api.UpdateObject(t.ctx, bucket, key, version, in))
	})
	cmd.Example = "  holdfast object update files/cat.jpg --tag team=blue --metadata owner=ann\n  holdfast object update files/page.html --cache-control no-store" +
		"\n  holdfast object update books/2026.pdf --retain-until 2036-12-31T00:00:00Z --lock-mode compliance"
	flags := cmd.Flags()
	flags.StringVar(&version, "version", "", versionFlag)
	flags.StringArrayVar(&metadata, "metadata", nil, "replace all metadata: NAME=VALUE (repeatable); an empty text removes it")
	flags.StringArrayVar(&tags, "tag", nil, "replace all tags: KEY=VALUE (repeatable); an empty text removes them")
	flags.StringVar(&contentType, "content-type", "", "the media type")
	flags.StringVar(&cacheControl, "cache-control", "", "the Cache-Control of downloads")
	flags.StringVar(&disposition, "content-disposition", "", "the Content-Disposition of downloads")
	lock.add(flags)
	return s.positions(cmd, objectNames)
}

func newObjectCopy(s *session) *cobra.Command {
	var version string
	var noClobber bool
	cmd := s.command("copy BUCKET/KEY BUCKET/KEY", "Copy an object, or bring an earlier version back", cobra.ExactArgs(2), func(t *task, args []string) error {
		bucket, key, err := t.object(args[0])
		if err != nil {
			return err
		}
		to, newKey, err := t.object(args[1])
		if err != nil {
			return err
		}
		in := wire.CopyObject{Key: newKey, SourceBucket: &bucket, SourceKey: key}
		if version != "" {
			in.SourceVersion = &version
		}
		return shows(t, func(w io.Writer, o wire.Object) {
			fmt.Fprintf(w, "copied %s to %s (%s)\n", args[0], args[1], size(o.SizeBytes))
		})(t.api.CopyObject(t.ctx, to, in, noClobber))
	})
	cmd.Long = "Copy an object with its metadata and tags. With --version and the same key twice, an earlier version becomes the\ncurrent one again."
	cmd.Example = "  holdfast object copy files/a.txt archive/2026/a.txt\n  holdfast object copy --version 01k6zv7r9pxa3c5n8m2q4t6w8y files/a.txt files/a.txt"
	cmd.Flags().StringVar(&version, "version", "", versionFlag)
	cmd.Flags().BoolVar(&noClobber, "no-clobber", false, "replace no object that is there")
	return s.positions(cmd, objectNames, objectNames)
}

func newObjectVersions(s *session) *cobra.Command {
	cmd := s.command("versions BUCKET[/PREFIX]", "Show the versions of objects", cobra.ExactArgs(1), func(t *task, args []string) error {
		bucket, prefix, err := t.objects(args[0])
		if err != nil {
			return err
		}
		return list(t, t.api.Versions(t.ctx, bucket, prefix), "there are no objects here", []string{"KEY", "VERSION", "SIZE", "CHANGED", "STATE"}, func(v wire.ObjectVersion) []string {
			state, bytes := "", size(v.SizeBytes)
			if v.Latest {
				state = "current"
			}
			if v.DeleteMarker {
				state, bytes = strings.TrimPrefix(state+", deleted", ", "), ""
			}
			if v.Retention != nil || v.LegalHold {
				state = strings.TrimPrefix(state+", locked", ", ")
			}
			return []string{v.Key, v.VersionID, bytes, formatTime(&v.LastModified), state}
		})
	})
	cmd.Long = "Show the versions of the objects whose keys begin with PREFIX, the newest of each first.\n`holdfast bucket update --versioning enabled` has a bucket keep them."
	return s.positions(cmd, objectNames)
}
