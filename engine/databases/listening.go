package databases

import (
	"maps"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// ServerPorts returns the TCP ports on which this appliance's servers listen, or will when they are started, by their
// ids: those of databases, of which dbs are the records, and others. The server of a database that may sleep has a
// private port, which its record does not name.
func (s *Service) ServerPorts(dbs []model.Database) map[string]int {
	ports := s.warm.portsByID()
	if s.Started() {
		maps.Copy(ports, s.Instances.ListenPorts())
	}
	for _, db := range dbs {
		if _, supervised := ports[db.ID]; supervised {
			continue
		}
		if port := postgres.RecordedPort(s.DataDirectory(db.ID, db.Generation)); port > 0 { // not adopted yet
			ports[db.ID] = port
		}
	}
	return ports
}

// portsByID returns the ports of all warm servers, those to be adopted among them.
func (s *warmServers) portsByID() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ports)
}
