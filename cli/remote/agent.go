package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newAgent(s *session) *cobra.Command {
	return Group("agent", "The account at a glance, and advice", newAgentStatus(s), newRecommendations(s))
}

func newAgentStatus(s *session) *cobra.Command {
	return s.command("status", "Show the account at a glance", cobra.NoArgs, func(t *task, _ []string) error {
		return shows(t, statusDetails)(t.api.GetAgentStatus(t.ctx))
	})
}

func statusDetails(w io.Writer, s wire.Status) {
	var unprotected []string
	for _, db := range s.Backups.Unprotected {
		unprotected = append(unprotected, db.Name)
	}
	details(w,
		"organization", s.Organization.Name, "appliance", "version "+s.Server.Version,
		"last backup", formatTime(s.Backups.NewestCompletedAt), "last verified", formatTime(s.Backups.NewestVerifiedAt),
		"without backup", strings.Join(unprotected, ", "),
		"storage", fmt.Sprintf("%d buckets, %d objects, %s", s.Storage.Buckets, s.Storage.Objects, size(s.Storage.SizeBytes)),
		"disk free", size(s.Usage.Host.DiskFreeBytes),
		"PostgreSQL", strings.TrimSpace(text(s.Server.PostgresVersion)+" "+text(s.Server.PostgresOrigin)), "data directory", s.Server.DataDirectory,
		"deleted databases kept", span(time.Duration(s.Server.TrashRetentionSeconds)*time.Second),
		"replaced data kept", span(time.Duration(s.Server.ReplacedRetentionSeconds)*time.Second))
	printMore(w, []string{"DATABASE", "STATUS", "SIZE", "REASON"}, s.Databases, func(db wire.Database) []string {
		return []string{db.Name, doing(db), sizeOr(db.SizeBytes), text(db.StatusReason)}
	})
	printMore(w, []string{"SEVERITY", "ADVICE"}, s.Recommendations, func(r wire.Recommendation) []string {
		return []string{string(r.Severity), r.Title}
	})
}

func newRecommendations(s *session) *cobra.Command {
	return s.command("recommendations", "Show what should be done", cobra.NoArgs, func(t *task, _ []string) error {
		all := []wire.Recommendation{}
		for r, err := range t.api.Recommendations(t.ctx, client.RecommendationOptions{}) {
			if err != nil {
				return err
			}
			all = append(all, r)
		}
		return t.showWith(whole(), all, func(w io.Writer) {
			for i, r := range all {
				if i > 0 {
					fmt.Fprintln(w)
				}
				printRecommendation(w, r)
			}
			if len(all) == 0 {
				t.note("there is nothing to be done")
			}
		})
	})
}

func printRecommendation(w io.Writer, r wire.Recommendation) {
	of := ""
	if r.Resource != nil && r.Resource.Name != nil {
		of = " (" + r.Resource.Type + " " + *r.Resource.Name + ")"
	}
	fmt.Fprintf(w, "%s: %s\n%s\n", strings.ToUpper(string(r.Severity)), printable(r.Title+of), printable(r.Message))
	if r.SQL != nil {
		fmt.Fprintf(w, "  SQL: %s\n", printable(*r.SQL))
	}
	if r.Action != nil {
		fmt.Fprintf(w, "  holdfast api %s %s%s\n", r.Action.Method, printable(r.Action.Path), printable(dataOf(*r.Action)))
	}
	if r.Caution != nil {
		fmt.Fprintf(w, "  careful: %s\n", printable(*r.Caution))
	}
}

// dataOf returns the flag that sends a request's body, quoted for a shell.
func dataOf(call wire.RecommendedCall) string {
	if len(call.Body) == 0 {
		return ""
	}
	body, err := json.Marshal(call.Body)
	if err != nil {
		return ""
	}
	return " --data " + shellQuote(string(body))
}
