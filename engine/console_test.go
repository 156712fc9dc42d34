package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// console is an engine without PostgreSQL, with a manual clock.
type console struct {
	*Engine
	t    *testing.T
	cfg  core.Config
	org  string
	mu   sync.Mutex
	time time.Time
}

func openConsole(t *testing.T) *console {
	t.Helper()
	c := &console{t: t, time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.cfg = core.Config{
		DataDir: t.TempDir(), Rates: core.DefaultRates(), AuditKeep: 10_000, MaxObjectBytes: 1 << 20, Version: "test",
		Clock: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.time
		},
	}
	c.open()
	t.Cleanup(func() { c.close() })
	if _, err := c.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := c.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	c.org = org.ID
	return c
}

func (c *console) open() {
	c.t.Helper()
	e, err := Open(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Engine = e
}

func (c *console) close() {
	c.t.Helper()
	if err := c.Close(context.Background()); err != nil {
		c.t.Error(err)
	}
}

func (c *console) wait(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

func (c *console) operator(action model.Action) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorOperator, Name: "root"}, Organization: c.org,
	}
}
