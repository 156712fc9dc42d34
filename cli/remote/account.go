package remote

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newAccount(s *session) *cobra.Command {
	return Group("account", "What the organization uses and may use, and its audit log",
		newUsage(s), newLimits(s), newBilling(s), newAudit(s))
}

func newUsage(s *session) *cobra.Command {
	return s.command("usage", "Show what is used of what may be", cobra.NoArgs, func(t *task, _ []string) error {
		return shows(t, usageDetails)(t.api.GetUsage(t.ctx))
	})
}

func usageDetails(w io.Writer, u wire.Usage) {
	m := u.Metrics
	columns(w, [][]string{
		{"WHAT", "USED", "LIMIT"},
		metric("databases", m.Databases, decimal), metric("in databases", m.DatabaseBytes, size),
		metric("buckets", m.Buckets, decimal), metric("objects", m.Objects, decimal), metric("in objects", m.StorageBytes, size),
		metric("in backups", m.BackupBytes, size), metric("connections", m.Connections, decimal),
	})
	fmt.Fprintf(w, "\nthe machine has %s of disk, %s of it free\n", size(u.Host.DiskTotalBytes), size(u.Host.DiskFreeBytes))
}

func decimal(n int64) string { return fmt.Sprint(n) }

func metric(name string, m wire.Metric, write func(int64) string) []string {
	return []string{name, write(m.Used), limit(m.Limit, write)}
}

func limit(n *int64, write func(int64) string) string {
	if n == nil {
		return "unlimited"
	}
	return write(*n)
}

func newLimits(s *session) *cobra.Command {
	return s.command("limits", "Show what the plan allows", cobra.NoArgs, func(t *task, _ []string) error {
		return shows(t, limitsDetails)(t.api.GetLimits(t.ctx))
	})
}

func limitsDetails(w io.Writer, l wire.Limits) {
	details(w,
		"plan", l.Plan, "databases", limit(l.Limits.Databases, decimal), "in databases", limit(l.Limits.DatabaseBytes, size),
		"buckets", limit(l.Limits.Buckets, decimal), "objects", limit(l.Limits.Objects, decimal),
		"in objects", limit(l.Limits.StorageBytes, size), "in backups", limit(l.Limits.BackupBytes, size),
		"connections", limit(l.Limits.Connections, decimal))
	printMore(w, []string{"A KEY MAY", "REQUESTS"}, slices.Sorted(maps.Keys(l.RateLimits)), func(name string) []string {
		rate := l.RateLimits[name]
		return []string{strings.ReplaceAll(name, "_", " "), fmt.Sprintf("%d in %s", rate.Limit, time.Duration(rate.WindowSeconds)*time.Second)}
	})
}

func newBilling(s *session) *cobra.Command {
	return s.command("billing", "Show what is owed", cobra.NoArgs, func(t *task, _ []string) error {
		return shows(t, func(w io.Writer, b wire.Billing) {
			details(w, "plan", b.Plan, "status", string(b.Status), "due", strings.TrimSpace(fmt.Sprintf("%d.%02d %s",
				b.AmountDueCents/100, b.AmountDueCents%100, text(b.Currency))),
				"trial until", formatTime(b.Trial.EndsAt))
		})(t.api.GetBilling(t.ctx))
	})
}

func newAudit(s *session) *cobra.Command {
	most := 50
	var filter client.AuditOptions
	var since, until string
	cmd := s.command("audit", "Show what was done, newest first", cobra.NoArgs, func(t *task, _ []string) error {
		if most < 1 {
			return usagef("limit: must be at least 1")
		}
		now, err := time.Now(), error(nil)
		if filter.Since, err = timeOrAgo("since", since, now); err != nil {
			return err
		}
		if filter.Until, err = timeOrAgo("until", until, now); err != nil {
			return err
		}
		entries, more, err := t.audit(filter, most)
		if err != nil {
			return err
		}
		rows := [][]string{}
		for _, e := range entries {
			about := ""
			if e.Resource != nil {
				about = strings.TrimSpace(text(e.Resource.Name) + " " + text(e.Resource.ID))
			}
			outcome := strings.TrimSpace(string(e.Outcome) + " " + text(e.ErrorCode))
			rows = append(rows, []string{formatTime(&e.At), e.Action, about, outcome, actor(e.Actor), text(e.IP)})
		}
		return t.table(map[string]any{"has_next": more}, entries, "nothing was done yet", []string{"AT", "ACTION", "ABOUT", "OUTCOME", "BY", "FROM"}, rows)
	})
	cmd.Example = "  holdfast account audit --action database.delete --since 24h"
	flags := cmd.Flags()
	flags.IntVar(&most, "limit", most, "how many entries")
	flags.StringVar(&filter.Action, "action", "", "only this action, such as database.create")
	flags.StringVar(&filter.Actor, "actor", "", "only this actor: the id of a key or person, or a type of actor")
	flags.StringVar(&filter.Resource, "resource", "", "only what was about the resource with this id")
	flags.StringVar(&filter.Outcome, "outcome", "", "only what ended like this: success, denied or error")
	flags.StringVar(&filter.RequestID, "request-id", "", "only what was done for this request: each response and error message has its id")
	flags.StringVar(&filter.IP, "ip", "", "only what came from this address")
	flags.StringVar(&since, "since", "", "only from this time on: RFC 3339, or how long ago, such as 24h")
	flags.StringVar(&until, "until", "", "only before this time")
	return cmd
}

// largestPage is the maximum number of entries in a page of the audit log.
const largestPage = 100

// audit reads the newest entries and reports whether there are more. An entry added meanwhile moves others on to
// the next page; audit drops those duplicates.
func (t *task) audit(filter client.AuditOptions, most int) (_ []wire.AuditEntry, more bool, err error) {
	entries, seen := []wire.AuditEntry{}, map[string]bool{}
	filter.Limit = min(most, largestPage)
	for filter.Page = 1; ; filter.Page++ {
		page, err := t.api.ListAuditLogs(t.ctx, filter)
		if err != nil {
			return nil, false, err
		}
		for _, e := range page.Entries {
			if !seen[e.ID] {
				seen[e.ID] = true
				entries = append(entries, e)
			}
		}
		if !page.HasNext || len(entries) >= most {
			return entries[:min(len(entries), most)], page.HasNext || len(entries) > most, nil
		}
	}
}

func actor(a wire.Actor) string {
	if name := text(a.Name); name != "" {
		return name
	}
	return string(a.Type)
}
