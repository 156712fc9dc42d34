package remote

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

// link holds the flags of `object link`.
type link struct {
	upload, form, once         bool
	expiresIn                  time.Duration
	maxBytes                   int64
	contentType, save, version string
}

func newObjectLink(s *session) *cobra.Command {
	var in link
	cmd := s.command("link BUCKET/KEY", "Make a link that downloads or uploads without a key", cobra.ExactArgs(1), func(t *task, args []string) error {
		if (in.form || in.once || in.maxBytes != 0 || in.contentType != "") && !in.upload {
			return usagef("--form, --once, --max-bytes and --content-type are for --upload")
		}
		if in.upload && (in.save != "" || in.version != "") {
			return usagef("--save-as and --version are for downloads")
		}
		if in.expiresIn < time.Second || in.expiresIn > 7*24*time.Hour {
			return usagef("--expires-in must be from 1s to 168h")
		}
		bucket, key, err := t.object(args[0])
		if err != nil {
			return err
		}
		if in.upload {
			return t.uploadLink(bucket, key, in)
		}
		return t.downloadLink(bucket, key, in)
	})
	cmd.Long = "Make a link that downloads an object or, with --upload, uploads one, without a key. A KEY that ends with a slash lets it\n" +
		"upload any key that begins so. The link ends with the key that makes it."
	cmd.Example = "  holdfast object link files/report.pdf --expires-in 24h\n  holdfast object link --upload --content-type 'image/*' --max-bytes 5000000 files/inbox/"
	flags := cmd.Flags()
	flags.BoolVar(&in.upload, "upload", false, "make a link for uploads")
	flags.BoolVar(&in.form, "form", false, "make it for an HTML form")
	flags.BoolVar(&in.once, "once", false, "let it replace no object that is there")
	flags.DurationVar(&in.expiresIn, "expires-in", time.Hour, "how long it is valid, at most 168h")
	flags.Int64Var(&in.maxBytes, "max-bytes", 0, "the largest object it uploads (default: the appliance's limit)")
	flags.StringVar(&in.contentType, "content-type", "", "the media type it uploads, such as image/png or image/*")
	flags.StringVar(&in.save, "save-as", "", "have browsers save the download to a file of this name")
	flags.StringVar(&in.version, "version", "", versionFlag)
	return s.positions(cmd, objectNames)
}

func (t *task) downloadLink(bucket, key string, in link) error {
	request := wire.CreateDownloadLink{Key: key, ExpiresIn: new(wire.WholeNumber(in.expiresIn / time.Second))}
	if in.version != "" {
		request.Version = &in.version
	}
	if in.save != "" {
		request.Disposition = new(fmt.Sprintf("attachment; filename=%q", in.save))
	}
	return shows(t, func(w io.Writer, l wire.DownloadLink) { fmt.Fprintln(w, l.URL) })(t.api.CreateDownloadLink(t.ctx, bucket, request))
}

func (t *task) uploadLink(bucket, key string, in link) error {
	request := wire.CreateUploadLink{Key: &key, ExpiresIn: new(wire.WholeNumber(in.expiresIn / time.Second)), IfAbsent: &in.once}
	if strings.HasSuffix(key, "/") {
		request.Key, request.KeyPrefix = nil, &key
	}
	if in.form {
		request.Method = new(wire.LinkPost)
	}
	if in.maxBytes != 0 {
		request.MaxBytes = &in.maxBytes
	}
	if in.contentType != "" {
		request.ContentType = &in.contentType
	}
	return shows(t, func(w io.Writer, l wire.UploadLink) {
		fmt.Fprintf(w, "%s %s\n", l.Method, l.URL)
		for _, of := range []map[string]string{l.Headers, l.Fields} {
			for _, name := range slices.Sorted(maps.Keys(of)) {
				fmt.Fprintf(w, "%s: %s\n", name, of[name])
			}
		}
	})(t.api.CreateUploadLink(t.ctx, bucket, request))
}
