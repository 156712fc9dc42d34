package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/postgres/binaries"
)

// checkPostgres reports which PostgreSQL a start would use, and why not the
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
		case c.Origin == binaries.OriginFlag:
			return one(Finding{check, Problem, c.String(), "correct --postgres-bin, or leave it out"})
		}
		passedOver = append(passedOver, c.String())
	}
	detail := fmt.Sprintf("none is installed; the first start fetches PostgreSQL %d from the network", binaries.NewestRelease)
	if len(passedOver) > 0 {
		detail += "; passed over: " + strings.Join(passedOver, "; ")
	}
	return one(Finding{check, Warning, detail, fmt.Sprintf(
		"without a network install PostgreSQL %d or newer (on Debian the package postgresql), or name one with --postgres-bin", binaries.OldestMajor)})
}

// checkClientTools looks for the tools of exports, imports and `db psql`.
// pg_dump must be at least as new as the server that is installed or would be
// fetched.
func checkClientTools(ctx context.Context, opts Options) []Finding {
	server := binaries.Set{Major: binaries.NewestRelease}
	all := opts.Search.Candidates(ctx)
	if i := slices.IndexFunc(all, func(c binaries.Candidate) bool { return c.Err == nil }); i >= 0 {
		server = all[i].Set
	}
	var found []Finding
	for _, tool := range []struct {
		name, purpose string
		major         int
	}{
		{"pg_dump", "exports and imports", server.Major},
		{"psql", "`holdfast db psql`", binaries.OldestMajor},
	} {
		path, err := opts.Search.ClientTool(ctx, tool.name, tool.major, server)
		if err != nil {
			found = append(found, Finding{
				tool.name, Warning, "missing, so there are no " + tool.purpose + ": " + err.Error(),
				fmt.Sprintf("install the package postgresql-client-%d or newer", server.Major),
			})
			continue
		}
		found = append(found, Finding{Check: tool.name, Level: OK, Detail: path})
	}
	return found
}
