package databases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/proxy"
)

// proxySet has the proxies of the databases that may sleep.
type proxySet struct {
	mu   sync.Mutex
	byID map[string]*proxy.Proxy
}

func (s *proxySet) get(id string) *proxy.Proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

func (s *proxySet) put(id string, p *proxy.Proxy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*proxy.Proxy{}
	}
	s.byID[id] = p
}

func (s *proxySet) take(id string) *proxy.Proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byID[id]
	delete(s.byID, id)
	return p
}

func (s *proxySet) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.byID))
}

// setRules gives the proxy of a database, if it has one, the rules of its record.
func (s *proxySet) setRules(db model.Database) {
	if p := s.get(db.ID); p != nil {
		p.SetRules(clientRules(db))
	}
}

// showClients replaces the proxy's address in sessions by that of the client.
func (s *proxySet) showClients(id string, sessions []postgres.Session) {
	p := s.get(id)
	if p == nil {
		return
	}
	for i := range sessions {
		if client, known := p.Address(sessions[i].Port); known {
			sessions[i].Address = client.String()
		}
	}
}

// clientRules returns who may connect to a database through its proxy.
func clientRules(db model.Database) proxy.Rules {
	if db.Status == model.DatabaseImporting {
		return proxy.Rules{}
	}
	return proxy.Rules{Database: db.Name, Users: clientUsers(db), Creators: creators(db), Refused: postgres.Templates(), Allow: db.Allowlist}
}

// proxyNetworks is the allow-list of a server whose clients use a proxy.
func proxyNetworks() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr(postgres.ProxiedHost), 32)}
}

// servingSpec returns how to run the instance that serves a database's clients, directly
// or through its proxy.
func (s *Service) servingSpec(ctx context.Context, db model.Database) (postgres.Spec, error) {
	spec, err := s.Spec(ctx, db)
	p := s.proxies.get(db.ID)
	if err != nil || p == nil {
		return spec, err
	}
	spec.Config.Listen, spec.Config.Port = []string{postgres.ProxiedHost}, 0
	spec.Proxied = &postgres.Proxied{Block: p.Block, Reserved: func(port int) bool {
		return port >= s.core.Config.FirstPort && port <= s.core.Config.LastPort
	}}
	return spec, nil
}

// holdPort opens the proxy of a database that may sleep, unless it is open, on another
// port if a foreign process uses its own. A database that may not sleep has none.
// changed is when its data last changed; zero means now.
func (s *Service) holdPort(db model.Database, changed time.Time) (model.Database, error) {
	if db.SleepAfter == 0 {
		return db, s.releasePort(db.ID)
	}
	if s.proxies.get(db.ID) != nil {
		s.proxies.setRules(db)
		return db, nil
	}
	p, err := s.openProxy(db, changed)
	if errors.Is(err, syscall.EADDRINUSE) {
		if db.Port, err = s.portTaken(db.ID); err == nil {
			p, err = s.openProxy(db, changed)
		}
	}
	if err != nil {
		err = fmt.Errorf("hold the port of a database: %w", err)
		if model.CodeOf(err) == model.CodeInternal {
			err = &model.Error{Code: model.CodeInternal, Err: err, Message: fmt.Sprintf("port %d cannot be opened for the database's clients: the operator's log says why", db.Port)}
		}
		return db, err
	}
	s.proxies.put(db.ID, p)
	return db, nil
}

func (s *Service) openProxy(db model.Database, changed time.Time) (*proxy.Proxy, error) {
	return proxy.Open(proxy.Options{
		Listen: s.core.Config.Listen, Port: db.Port, Rules: clientRules(db), Changed: changed,
		Running:   func() (string, bool) { return s.Instances.ClientAddress(db.ID) },
		Wake:      func(ctx context.Context) (string, error) { return s.awaitServer(ctx, db.ID) },
		Directory: func() string { return s.DataDirectory(db.ID, db.Generation) },
		Log:       s.core.Log.With("database", db.ID),
	})
}

// clientPatience is how long a client waits for a server that is being started for
// another reason, such as a restart.
const clientPatience = 10 * time.Second

// awaitServer wakes a database for a client and returns the address of its server.
func (s *Service) awaitServer(ctx context.Context, id string) (string, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); ; {
		err := s.wake(ctx, id)
		if to, running := s.Instances.ClientAddress(id); running {
			return to, nil
		}
		if err != nil {
			return "", err
		}
		if time.Since(began) > clientPatience {
			return "", errors.New("the server does not run")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// releasePort closes the proxy of a database, if there is one, which ends its clients.
func (s *Service) releasePort(id string) error {
	if p := s.proxies.take(id); p != nil {
		return p.Close()
	}
	return nil
}

// CloseProxies closes all proxies.
func (s *Service) CloseProxies() (err error) {
	for _, id := range s.proxies.ids() {
		err = errors.Join(err, s.releasePort(id))
	}
	return err
}

// endClients ends the sessions of a proxy's clients, which the server knows by ports,
// and returns how many it ended.
func (s *Service) endClients(ctx context.Context, db model.Database, ports []int32) (int, error) {
	ended := 0
	err := s.applyOrRestart(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		n, err := postgres.TerminateClients(ctx, conn, ports)
		ended += n
		return err
	})
	return ended, err
}
