package postgres

import (
	"maps"
	"slices"
)

// ListenPorts returns the TCP ports on which the instances listen, or will when they are started, by id. Instances that
// listen on no address, or have no port yet, are left out.
func (s *Supervisor) ListenPorts() map[string]int {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.instances))
	s.mu.Unlock()
	ports := map[string]int{}
	for _, i := range all {
		if c := i.specification().Config; len(c.Listen) > 0 && c.Port > 0 {
			ports[i.id] = c.Port
		}
	}
	return ports
}

// RecordedPort returns the port in the postmaster.pid of a data directory, supervised or not; 0 if no server runs there.
// A server writes it before it listens. A server that was killed may have left it.
func RecordedPort(dir string) int {
	running, err := readPIDFile(dir)
	if err != nil {
		return 0
	}
	return running.port
}
