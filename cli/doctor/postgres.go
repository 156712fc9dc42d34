package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/postgres"
)

// checkPostgres says which PostgreSQL a start would use, and why not the
// others.
func checkPostgres(ctx context.Context, opts Options) []Finding {
	const check = "postgresql"
	var passedOver []string
	for _, c := range opts.Search.Candidates(ctx) {
		switch {
		case c.Err == nil:
			detail := c.String()
			if len(passedOver) > 0 {
				detail += "; passed over: " + strings.Join(passedOver, "; ")
			}
			return one(Finding{Check: check, Level: OK, Detail: detail})
		case c.Origin == postgres.OriginFlag:
			return one(Finding{check, Problem, c.String(), "correct --postgres-bin, or leave it out"})
		}
		passedOver = append(passedOver, c.String())
	}
	detail := "none is installed; the first start fetches one from the network"
	if len(passedOver) > 0 {
		detail += "; passed over: " + strings.Join(passedOver, "; ")
	}
	return one(Finding{check, Warning, detail, fmt.Sprintf(
		"without a network install PostgreSQL %d or newer (on Debian the package postgresql), or name one with --postgres-bin", postgres.OldestMajor)})
}

// checkClientTools looks for what exports, imports and `db psql` need.
func checkClientTools(ctx context.Context, opts Options) []Finding {
	server := postgres.Binaries{Major: postgres.OldestMajor}
	all := opts.Search.Candidates(ctx)
	if i := slices.IndexFunc(all, func(c postgres.Candidate) bool { return c.Err == nil }); i >= 0 {
		server = all[i].Binaries
	}
	var found []Finding
	for tool, purpose := range map[string]string{
		"pg_dump": "exports and imports", "psql": "`holdfast db psql`",
	} {
		path, err := opts.Search.ClientTool(ctx, tool, server.Major, server)
		if err != nil {
			found = append(found, Finding{
				tool, Warning, "missing, so there are no " + purpose + ": " + err.Error(),
				fmt.Sprintf("install the package postgresql-client-%d or newer", server.Major),
			})
			continue
		}
		found = append(found, Finding{Check: tool, Level: OK, Detail: path})
	}
	return sorted(found)
}
