package doctor

import (
	"context"
	"fmt"
	"net"

	"holdfast/engine/postgres"
)

// fewPorts is the number of free ports below which checkPorts warns.
const fewPorts = 10

// checkListen reports whether the appliance's addresses can be bound.
func checkListen(_ context.Context, opts Options) []Finding {
	var found []Finding
	for _, a := range opts.Addresses {
		switch {
		case opts.Running:
			found = append(found, Finding{Check: a.Check, Level: OK, Detail: "an appliance is running on this data directory"})
		case a.err != nil:
			found = append(found, Finding{a.Check, Problem, a.err.Error(), "stop what listens there, or name another address with " + a.Flag})
		default:
			found = append(found, Finding{Check: a.Check, Level: OK, Detail: a.At + " is free"})
		}
	}
	return found
}

// checkPorts counts the free ports for databases.
func checkPorts(_ context.Context, opts Options) []Finding {
	const check = "database ports"
	for _, address := range opts.PostgresListen {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			return one(Finding{check, Problem, err.Error(), "name addresses of this machine with --postgres-listen"})
		}
		l.Close()
	}
	free, next := 0, opts.FirstPort
	for next <= opts.LastPort && free < fewPorts {
		port, err := postgres.FreePort(next, opts.LastPort, opts.PostgresListen, nil)
		if err != nil {
			break
		}
		free, next = free+1, port+1
	}
	where := fmt.Sprintf("from %d to %d", opts.FirstPort, opts.LastPort)
	const remedy = "widen --postgres-ports"
	switch {
	case free == 0:
		return one(Finding{check, Problem, "none is free " + where, remedy})
	case free < fewPorts:
		return one(Finding{check, Warning, fmt.Sprintf("only %d are free %s", free, where), remedy})
	}
	return one(Finding{Check: check, Level: OK, Detail: fmt.Sprintf("%d or more are free %s", free, where)})
}
