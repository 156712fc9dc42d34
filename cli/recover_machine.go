package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"holdfast/engine/model"
)

// unfit says what this machine lacks for databases that are about to be recovered: PostgreSQL of their major versions, and
// their ports.
func (r *recoverer) unfit(ctx context.Context, all []model.Database) (warnings []string) {
	majors := map[int]bool{}
	for _, found := range r.engine().Search.Candidates(ctx) {
		if found.Err == nil {
			majors[found.Major] = true
		}
	}
	missing := map[int][]string{}
	var taken []string
	for _, db := range all {
		if !majors[db.Major] {
			missing[db.Major] = append(missing[db.Major], db.Name)
		}
		if r.isTaken(ctx, db.Port) {
			taken = append(taken, fmt.Sprintf("%d (%s)", db.Port, db.Name))
		}
	}
	for major, names := range missing {
		warnings = append(warnings, fmt.Sprintf("PostgreSQL %d is not installed here, and these databases need it: %s. Install it first, or the recovery fetches it from the network", major, strings.Join(names, ", ")))
	}
	slices.Sort(warnings)
	if len(taken) > 0 {
		warnings = append(warnings, fmt.Sprintf("other programs use the ports of databases: %s. Stop those programs first, or these databases get other ports, and their URLs change", strings.Join(taken, ", ")))
	}
	return warnings
}

// isTaken reports whether another program listens on a port.
func (r *recoverer) isTaken(ctx context.Context, port int) bool {
	for _, address := range r.Config.Listen {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return true
		}
		if err == nil {
			_ = l.Close()
		}
	}
	return false
}
