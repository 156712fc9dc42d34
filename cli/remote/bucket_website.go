package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

// website holds the flags of `bucket website`.
type website struct {
	index, notFound, redirect, rules string
	off                              bool
}

func newBucketWebsite(s *session) *cobra.Command {
	var in website
	cmd := s.command("website BUCKET", "Show how a bucket is served as a website, or change that", cobra.ExactArgs(1), func(t *task, args []string) error {
		site, err := in.read(t.cmd.InOrStdin())
		if err != nil {
			return err
		}
		id, err := t.bucket(args[0])
		if err != nil {
			return err
		}
		if site.IsZero() {
			b, err := t.api.GetBucket(t.ctx, id)
			return shows(t, websiteDetails)(b, err)
		}
		return shows(t, websiteDetails)(t.api.UpdateBucket(t.ctx, id, wire.UpdateBucket{Website: site}))
	})
	cmd.Long = "Show how a bucket is served as a website, or change that, where the operator serves websites. Only objects that are\n" +
		"public are served. What is given replaces all that was set."
	cmd.Example = "  holdfast bucket website site --index index.html --error 404.html && holdfast bucket update site --public\n" +
		"  holdfast bucket website old --redirect https://example.com\n  holdfast bucket website site --off"
	flags := cmd.Flags()
	flags.StringVar(&in.index, "index", "", "what is added to a path that is empty or ends in a slash, such as index.html")
	flags.StringVar(&in.notFound, "error", "", "key of the object that is the body of errors")
	flags.StringVar(&in.redirect, "redirect", "", "redirect every request to this host, such as example.com or https://example.com")
	flags.StringVar(&in.rules, "rules", "", "a file with rules as the API has them, a JSON array; - is standard input")
	flags.BoolVar(&in.off, "off", false, "serve no website")
	return s.positions(cmd, bucketNames)
}

// read returns what the flags set, the zero value for nothing.
func (w website) read(stdin io.Reader) (set wire.Resettable[wire.SetWebsite], err error) {
	site := w.index != "" || w.notFound != "" || w.rules != ""
	switch {
	case w == website{off: true}:
		return wire.Default[wire.SetWebsite](), nil
	case w == website{}:
		return set, nil
	case w.off || site && w.redirect != "" || w.redirect == "" && w.index == "":
		return set, usagef("give --index, with or without --error and --rules, or --redirect, or --off")
	case w.redirect != "":
		return w.readRedirect()
	}
	in := wire.SetWebsite{IndexDocument: &w.index}
	if w.notFound != "" {
		in.ErrorDocument = &w.notFound
	}
	if in.Rules, err = readRules(w.rules, stdin); err != nil {
		return set, err
	}
	return wire.SetTo(in), nil
}

func (w website) readRedirect() (set wire.Resettable[wire.SetWebsite], err error) {
	in := wire.SetWebsite{RedirectHost: &w.redirect}
	if strings.Contains(w.redirect, "://") {
		to, err := url.Parse(w.redirect)
		if err != nil || to.Host == "" || strings.Trim(to.Path, "/") != "" || to.RawQuery != "" || to.Fragment != "" || to.User != nil {
			return set, usagef("--redirect is a host, with or without http:// or https:// in front: paths stay as they are")
		}
		in.RedirectHost, in.RedirectProtocol = &to.Host, new(wire.WebsiteProtocol(to.Scheme))
	}
	return wire.SetTo(in), nil
}

// readRules reads rules from a file, "" for none.
func readRules(file string, stdin io.Reader) (rules []wire.SetWebsiteRule, err error) {
	var text []byte
	switch file {
	case "":
		return nil, nil
	case "-":
		text, err = io.ReadAll(stdin)
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&rules); err != nil {
		return nil, usagef("--rules: %v", err)
	}
	return rules, nil
}

func websiteDetails(w io.Writer, b wire.Bucket) {
	site := b.Website
	if site == nil {
		fmt.Fprintf(w, "%s is served as no website\n", b.Name)
		return
	}
	redirect := text(site.RedirectHost)
	if site.RedirectProtocol != nil {
		redirect = string(*site.RedirectProtocol) + "://" + redirect
	}
	details(w, "website", text(site.URL), "index", text(site.IndexDocument), "error", text(site.ErrorDocument), "redirect", redirect,
		"rules", fmt.Sprint(len(site.Rules)), "public", yesNo(b.Public), "public prefixes", strings.Join(b.PublicPrefixes, " "))
}
