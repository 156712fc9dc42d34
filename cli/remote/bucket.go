package remote

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newBucket(s *session) *cobra.Command {
	return Group("bucket", "Buckets of objects", newBucketList(s), newBucketCreate(s), newBucketGet(s), newBucketUpdate(s), newBucketWebsite(s), newBucketHistory(s), newBucketRestore(s), newBucketDelete(s))
}

func newBucketList(s *session) *cobra.Command {
	return s.command("list", "Show the buckets", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, selected(t, client.Filter{}, t.buckets), "there are no buckets; `holdfast bucket create NAME` makes one",
			[]string{"NAME", "ID", "OBJECTS", "SIZE", "PUBLIC", "CREATED"}, func(b wire.Bucket) []string {
				return []string{b.Name, b.ID, fmt.Sprint(b.ObjectCount), size(b.SizeBytes), publicWord(b), Ago(&b.CreatedAt)}
			})
	})
}

// publicWord says in a word who may read a bucket.
func publicWord(b wire.Bucket) string {
	if !b.Public && len(b.PublicPrefixes) > 0 {
		return "in part"
	}
	return yesNo(b.Public)
}

func newBucketCreate(s *session) *cobra.Command {
	var public bool
	cmd := s.command("create NAME", "Make a bucket", cobra.ExactArgs(1), func(t *task, args []string) error {
		project, err := t.projectForNew()
		if err != nil {
			return err
		}
		return shows(t, func(w io.Writer, b wire.Bucket) {
			fmt.Fprintf(w, "created %s (%s)\n", b.Name, b.ID)
			if b.PublicURL != nil {
				fmt.Fprintf(w, "anybody can download from %s\n", *b.PublicURL)
			}
		})(t.api.CreateBucket(t.ctx, wire.CreateBucket{Project: project, Name: args[0], Public: &public}))
	})
	cmd.Flags().BoolVar(&public, "public", false, "let anybody download its objects")
	return cmd
}

func newBucketGet(s *session) *cobra.Command {
	cmd := s.command("get BUCKET", "Show a bucket", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.bucket(args[0])
		if err != nil {
			return err
		}
		return shows(t, bucketDetails)(t.api.GetBucket(t.ctx, id))
	})
	return s.positions(cmd, bucketNames)
}

func bucketDetails(w io.Writer, b wire.Bucket) {
	details(w,
		"name", b.Name, "id", b.ID, "project", b.Project, "objects", fmt.Sprint(b.ObjectCount), "size", size(b.SizeBytes),
		"public", yesNo(b.Public), "public prefixes", strings.Join(b.PublicPrefixes, " "), "public list", yesNo(b.PublicListing), "public URL", text(b.PublicURL), "objects kept", kept(b.ExpiryRules), "versioning", string(b.Versioning), "locks", locks(b.ObjectLock), "created", formatTime(&b.CreatedAt))
}

// kept describes how long rules keep objects.
func kept(rules []wire.ExpiryRule) string {
	all, others := "until they are deleted", ""
	for _, r := range rules {
		below := ""
		if r.Prefix != "" {
			below = " below " + r.Prefix
		}
		switch {
		case r.Days != nil && below == "":
			all = fmt.Sprintf("for %d days", *r.Days)
		case r.Days != nil:
			others += fmt.Sprintf(";%s for %d days", below, *r.Days)
		}
		if r.NoncurrentDays != nil {
			others += fmt.Sprintf("; earlier versions%s for %d days", below, *r.NoncurrentDays)
		}
	}
	return all + others
}

// expiryRules returns the rules of flags in the form PREFIX=DAYS, none for nil.
func expiryRules(current, noncurrent []string) ([]wire.SetExpiryRule, error) {
	rules := []wire.SetExpiryRule{}
	add := func(flag string, values []string, set func(r *wire.SetExpiryRule, days *wire.WholeNumber)) error {
		for _, v := range slices.DeleteFunc(values, func(v string) bool { return v == "" }) {
			at := strings.LastIndexByte(v, '=')
			days, err := strconv.Atoi(v[at+1:])
			if at < 0 || err != nil {
				return usagef("--%s must be PREFIX=DAYS, such as tmp/=7, or =7 for all objects", flag)
			}
			i := slices.IndexFunc(rules, func(r wire.SetExpiryRule) bool { return r.Prefix == v[:at] })
			if i < 0 {
				i, rules = len(rules), append(rules, wire.SetExpiryRule{Prefix: v[:at]})
			}
			set(&rules[i], new(wire.WholeNumber(days)))
		}
		return nil
	}
	err := errors.Join(
		add("expire", current, func(r *wire.SetExpiryRule, days *wire.WholeNumber) { r.Days = days }),
		add("expire-noncurrent", noncurrent, func(r *wire.SetExpiryRule, days *wire.WholeNumber) { r.NoncurrentDays = days }))
	return rules, err
}

// locks describes the Object Lock of a bucket.
func locks(l *wire.BucketLock) string {
	switch {
	case l == nil:
		return "none"
	case l.Mode == nil:
		return "possible"
	}
	return fmt.Sprintf("%s for %d days and %d years", *l.Mode, l.Days, l.Years)
}

func newBucketUpdate(s *session) *cobra.Command {
	var public, listing bool
	var prefixes []string
	var days int
	var expire, expireNoncurrent []string
	var versioning wire.Versioning
	var lock string
	var lockDays int
	cmd := s.command("update BUCKET", "Change who may read a bucket, and how long objects and versions are kept", cobra.ExactArgs(1),
		func(t *task, args []string) error {
			var in wire.UpdateBucket
			if t.cmd.Flags().Changed("public") {
				in.Public = &public
			}
			if t.cmd.Flags().Changed("public-prefix") {
				in.PublicPrefixes = slices.DeleteFunc(prefixes, func(p string) bool { return p == "" })
			}
			if t.cmd.Flags().Changed("public-listing") {
				in.PublicListing = &listing
			}
			if t.cmd.Flags().Changed("expire-after-days") {
				in.ExpireAfterDays = new(wire.WholeNumber(days))
			}
			var err error
			if t.cmd.Flags().Changed("expire") || t.cmd.Flags().Changed("expire-noncurrent") {
				if in.ExpireAfterDays != nil {
					return usagef("say --expire-after-days, or --expire with =DAYS for all objects")
				}
				if in.ExpiryRules, err = expiryRules(expire, expireNoncurrent); err != nil {
					return err
				}
			}
			if t.cmd.Flags().Changed("versioning") {
				in.Versioning = &versioning
			}
			if in.ObjectLock, err = bucketLock(lock, lockDays); err != nil {
				return err
			}
			if in.Public == nil && in.PublicPrefixes == nil && in.PublicListing == nil && in.ExpireAfterDays == nil && in.ExpiryRules == nil && in.Versioning == nil && in.ObjectLock == nil {
				return usagef("say what is to change: --public, --public-prefix, --public-listing, --expire-after-days, --expire, --expire-noncurrent, --versioning or --object-lock")
			}
			id, err := t.bucket(args[0])
			if err != nil {
				return err
			}
			if days > 0 {
				if err := t.confirm("delete objects in %s that are more than %d days old, now and from now on", args[0], days); err != nil {
					return err
				}
			}
			if len(in.ExpiryRules) > 0 {
				if err := t.confirm("delete what is older in %s than the rules keep it, now and from now on", args[0]); err != nil {
					return err
				}
			}
			return shows(t, bucketDetails)(t.api.UpdateBucket(t.ctx, id, in))
		})
	cmd.Example = "  holdfast bucket update site --public\n  holdfast bucket update shop --public-prefix images/ --public-prefix fonts/\n  holdfast bucket update logs --expire-after-days 30\n  holdfast bucket update logs --expire tmp/=1 --expire =30 --expire-noncurrent =7\n  holdfast bucket update files --versioning enabled" +
		"\n  holdfast bucket update books --versioning enabled --object-lock compliance --lock-days 3650"
	cmd.Flags().BoolVar(&public, "public", false, "let anybody download its objects; --public=false lets nobody")
	cmd.Flags().StringArrayVar(&prefixes, "public-prefix", nil, "let anybody download the objects whose keys begin with this, once for each prefix, in place of earlier ones; --public-prefix= lets nobody")
	cmd.Flags().BoolVar(&listing, "public-listing", false, "let anybody list its keys, by the S3 endpoint, with public prefixes only those below them; --public-listing=false lets nobody")
	cmd.Flags().IntVar(&days, "expire-after-days", 0, "remove objects after so many days, for which the key must be one that may delete them; 0 keeps them")
	cmd.Flags().StringArrayVar(&expire, "expire", nil, "remove objects whose keys begin with a prefix after so many days, as PREFIX=DAYS, or =DAYS for all; once for each prefix, in place of earlier rules; --expire= keeps all")
	cmd.Flags().StringArrayVar(&expireNoncurrent, "expire-noncurrent", nil, "likewise for versions that are not current any more, and delete markers without other versions")
	cmd.Flags().StringVar((*string)(&versioning), "versioning", "", "keep versions that are overwritten or deleted (enabled), or no new ones (suspended)")
	cmd.Flags().StringVar(&lock, "object-lock", "", "let versions be locked, for which versioning must be on, and which cannot be turned off again: on, or governance or compliance with --lock-days for all new versions")
	cmd.Flags().IntVar(&lockDays, "lock-days", 0, "for how many days new versions cannot be removed")
	return s.positions(cmd, bucketNames)
}

// bucketLock returns what --object-lock and --lock-days set, nil for nothing.
func bucketLock(lock string, days int) (*wire.SetBucketLock, error) {
	mode := wire.LockMode(lock)
	switch {
	case lock == "" && days == 0:
		return nil, nil
	case lock == "on" && days == 0:
		return &wire.SetBucketLock{}, nil
	case (mode == wire.LockGovernance || mode == wire.LockCompliance) && days > 0:
		return &wire.SetBucketLock{Mode: &mode, Days: new(wire.WholeNumber(days))}, nil
	}
	return nil, usagef("--object-lock is on, or governance or compliance with --lock-days")
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
		if client.CodeOf(err) == wire.CodeConflict && !force {
			return failf(exitConflict, "%v; --force deletes them with it", err)
		}
		if err != nil {
			return err
		}
		return t.show(deleted, func(w io.Writer) {
			fmt.Fprintf(w, "deleted %s\n", args[0])
			t.remarkRecoverable(deleted.Recoverable, "restore "+id)
		})
	})
	cmd.Flags().BoolVar(&force, "force", false, "delete the objects in it too")
	return s.positions(cmd, bucketNames)
}
