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
