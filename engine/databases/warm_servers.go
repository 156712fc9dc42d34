package databases

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// A warm server is a running PostgreSQL that waits to become a database. It has the
// id, the port, the directory, the certificate and the settings of that database.
// Its rules admit no client, and its roles cannot log in. A creation commits a
// record with its id and port, and then changes its names, roles and rules
// (create_warm.go). One goroutine makes warm servers (warm_fill.go).
//
// Each has a note in the directory of the warm pool, an empty file whose name says
// everything. A directory without a record and with a note is a warm server; the
// next appliance adopts or removes it (warm_recover.go).
type warmServer struct {
	id      string
	port    int
	version string          // of PostgreSQL
	loaded  postgres.Loaded // when it was checked
}

// A note is named server-<format>-<version>-<port>-<id>. The format is that of
// prepared directories.
const notePrefix = "server-" + postgres.PreparedFormat + "-"

func (w warmServer) note() string {
	return fmt.Sprintf("%s%s-%d-%s", notePrefix, w.version, w.port, w.id)
}

// parseNote returns the warm server of a note, and false if it is not one of this
// format.
func parseNote(name string) (w warmServer, ok bool) {
	rest, ok := strings.CutPrefix(name, notePrefix)
	parts := strings.SplitN(rest, "-", 3)
	if !ok || len(parts) != 3 {
		return w, false
	}
	port, err := strconv.Atoi(parts[1])
	return warmServer{id: parts[2], port: port, version: parts[0]}, err == nil
}

// warmServers holds the warm servers, ready ones and those that are being made.
type warmServers struct {
	mu        sync.Mutex
	ready     []warmServer   // in the order in which they were made
	found     []warmServer   // left by the previous appliance, to be adopted
	ports     map[string]int // of all of the above and of those being made, by id
	creations int            // under way
	lastEnd   time.Time      // of a creation
	wake      chan struct{}
}

func newWarmServers() *warmServers {
	return &warmServers{ports: map[string]int{}, wake: make(chan struct{}, 1)}
}

// take returns a ready warm server for the caller's exclusive use. The caller
// decides its fate: a database, put or removal.
func (s *warmServers) take() (w warmServer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		return w, false
	}
	w, s.ready = s.ready[0], s.ready[1:]
	delete(s.ports, w.id)
	s.wakeLocked()
	return w, true
}

// put makes a warm server ready, or ready again.
func (s *warmServers) put(w warmServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[w.id] = w.port
	s.ready = append(s.ready, w)
}

// add records a warm server that is being made.
func (s *warmServers) add(w warmServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[w.id] = w.port
}

// forget removes a warm server that was not finished.
func (s *warmServers) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ports, id)
}

// nextFound returns a warm server to adopt.
func (s *warmServers) nextFound() (w warmServer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.found) == 0 {
		return w, false
	}
	w, s.found = s.found[0], s.found[1:]
	return w, true
}

func (s *warmServers) hasPort(port int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.ports {
		if p == port {
			return true
		}
	}
	return false
}

func (s *warmServers) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.ports[id]
	return known
}

// count returns how many are ready, and how many there are in total.
func (s *warmServers) count() (ready, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready), len(s.ports)
}

// begin notes that a creation is under way, until end is called.
func (s *warmServers) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creations++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.creations--
		s.lastEnd = time.Now()
		s.wakeLocked()
	}
}

// calm returns how long to wait until creations have left the machine alone for
// the pause.
func (s *warmServers) calm(pause time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creations > 0 {
		return pause
	}
	return pause - time.Since(s.lastEnd)
}

// wakeLocked wakes the goroutine that makes warm servers. The caller holds mu.
func (s *warmServers) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// notePath returns the path of a warm server's note.
func (s *Service) notePath(w warmServer) string {
	return filepath.Join(s.warmDirectory(), w.note())
}

func (s *Service) warmDirectory() string { return filepath.Join(s.core.Config.DataDir, "warm") }

// IsWarm reports whether the id is that of a warm server, which has no record.
func (s *Service) IsWarm(id string) bool { return s.warm.knows(id) }

// WarmPoolReady reports whether the warm pool is full, so that the next database
// is there at once.
func (s *Service) WarmPoolReady() bool {
	ready, _ := s.warm.count()
	return ready >= s.core.Config.Warm && s.WarmPool.Ready() >= s.preparedAhead()
}

// preparedAhead is how many prepared directories are kept for what the warm
// servers do not cover: bursts, imports, and making the next warm server.
func (s *Service) preparedAhead() int {
	return 2 * s.core.Config.Warm
}

// warmRecord returns what the specification of a warm server is made from: a record
// that admits no client.
func (s *Service) warmRecord(w warmServer) model.Database {
	return model.Database{
		ID: w.id, Port: w.port, Version: s.Binaries.Version, Major: s.Binaries.Major, Generation: 1, Status: model.DatabaseCreating,
	}
}
