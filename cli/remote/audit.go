package remote

import (
	"bufio"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newAudit(s *session) *cobra.Command {
	most := 50
	var flags auditFlags
	cmd := s.command("audit", "Show what was done, newest first", cobra.NoArgs, func(t *task, _ []string) error {
		if most < 1 {
			return usagef("limit: must be at least 1")
		}
		filter, err := flags.filter(time.Now())
		if err != nil {
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
	cmd.Flags().IntVar(&most, "limit", most, "how many entries")
	flags.register(cmd)
	cmd.AddCommand(newAuditExport(s))
	return cmd
}

// auditFlags select entries of the audit log.
type auditFlags struct {
	client.AuditOptions
	since, until string
}

func (f *auditFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Action, "action", "", "only this action, such as database.create")
	flags.StringVar(&f.Actor, "actor", "", "only this actor: the id of a key or person, or a type of actor")
	flags.StringVar(&f.Resource, "resource", "", "only what was about the resource with this id")
	flags.StringVar(&f.Outcome, "outcome", "", "only what ended like this: success, denied or error")
	flags.StringVar(&f.RequestID, "request-id", "", "only what was done for this request: each response and error message has its id")
	flags.StringVar(&f.IP, "ip", "", "only what came from this address")
	flags.StringVar(&f.since, "since", "", "only from this time on: RFC 3339, or how long ago, such as 24h")
	flags.StringVar(&f.until, "until", "", "only before this time")
}

func (f *auditFlags) filter(now time.Time) (o client.AuditOptions, err error) {
	o = f.AuditOptions
	if o.Since, err = timeOrAgo("since", f.since, now); err != nil {
		return o, err
	}
	o.Until, err = timeOrAgo("until", f.until, now)
	return o, err
}

func newAuditExport(s *session) *cobra.Command {
	var flags auditFlags
	cmd := s.command("export", "Write the audit log to standard output, newest first, an entry a line in JSON", cobra.NoArgs, func(t *task, _ []string) error {
		filter, err := flags.filter(time.Now())
		if err != nil {
			return err
		}
		out := bufio.NewWriter(t.cmd.OutOrStdout())
		lines := json.NewEncoder(out)
		lines.SetEscapeHTML(false)
		for entry, err := range t.api.ExportAuditLogs(t.ctx, filter) {
			if err == nil {
				err = lines.Encode(entry)
			}
			if err != nil {
				return errors.Join(err, out.Flush())
			}
		}
		return out.Flush()
	})
	cmd.Long = "Write the audit log to standard output, newest first, an entry a line in JSON as the API has it. The exit code is 0\n" +
		"only if these are all entries that the flags select."
	cmd.Example = "  holdfast account audit export --since 24h | jq -r 'select(.outcome == \"denied\") | .ip'"
	flags.register(cmd)
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
