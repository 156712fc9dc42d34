package databases

import (
	"sync"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// versionPools holds a pool without ready directories for each version that is not
// the default: only its template is kept.
type versionPools struct {
	mu     sync.Mutex
	byName map[string]*postgres.WarmPool // by version
	closed bool
}

// of returns the pool of a version, which open makes at first use.
func (p *versionPools) of(bin binaries.Set, open func() (*postgres.WarmPool, error)) (*postgres.WarmPool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errPoolsClosed
	}
	if pool := p.byName[bin.Version]; pool != nil {
		return pool, nil
	}
	pool, err := open()
	if err != nil {
		return nil, err
	}
	if p.byName == nil {
		p.byName = map[string]*postgres.WarmPool{}
	}
	p.byName[bin.Version] = pool
	return pool, nil
}

func (p *versionPools) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, pool := range p.byName {
		pool.Close()
	}
}
