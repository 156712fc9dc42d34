package core

import (
	"errors"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Change commits the changes of fn together with the call's audit entry.
func (c *Core) Change(call *model.Call, fn func(*meta.Tx) error) error {
	if err := c.refuseReadOnly(call); err != nil {
		return err
	}
	return ExplainDiskFull(c.Meta.Update(func(tx *meta.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return c.Audit(tx, call, nil)
	}))
}

// Audit adds the call's entry to the transaction; err is the call's result.
func (c *Core) Audit(tx *meta.Tx, call *model.Call, err error) error {
	if err == nil {
		if err := MarkIdempotentDone(tx, call.Idempotent, call.Resource); err != nil {
			return err
		}
	}
	entry := c.Entry(call, err)
	if err := tx.AppendAudit(c.Chain(), entry); err != nil {
		return err
	}
	tx.OnCommit(func() { call.Audited = true })
	return nil
}

func (c *Core) Entry(call *model.Call, err error) *model.AuditEntry {
	return &model.AuditEntry{
		ID: c.NewID(model.ResourceAuditEntry), At: c.Clock(),
		Organization: call.Organization, Actor: call.Actor,
		Action: call.Operation.Action, Resource: boundedResource(call.Resource),
		Outcome: model.OutcomeOf(err), ErrorCode: model.CodeOf(err),
		RequestID: call.RequestID, IP: call.IP, UserAgent: call.UserAgent, Details: call.Details,
	}
}

// CallOf returns the call of an entry that is still to be written.
func CallOf(entry model.AuditEntry) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: entry.Action}, Actor: entry.Actor, Organization: entry.Organization,
		RequestID: entry.RequestID, IP: entry.IP, UserAgent: entry.UserAgent, Resource: entry.Resource, Details: entry.Details,
	}
}

// maxResourceID is longer than any id, in bytes.
const maxResourceID = 64

// boundedResource cuts the resource named by a request to the length of a real one:
// anyone may request a nonexistent resource without a key, and each request leaves
// an entry.
func boundedResource(r model.Resource) model.Resource {
	r.ID = r.ID[:min(len(r.ID), maxResourceID)]
	r.Name = r.Name[:min(len(r.Name), model.MaxObjectKey)]
	return r
}

// Finish ends a call. It queues an entry for a call that was not audited with its
// change; the caller waits only if the queue is full. Requests that nothing else
// limits do not get an entry each ([AuditCoalescer]).
func (c *Core) Finish(call *model.Call, err error) {
	if call.Audited {
		return
	}
	call.Audited = true
	entry := c.Entry(call, err)
	if bounds := auditBounds(call, err); bounds != nil {
		c.Audits.Add(c.Coalescer.admit(entry, bounds)...)
		return
	}
	c.Audits.Add(entry)
}

// System returns a call by the appliance itself about an organization's resource.
func (c *Core) System(action model.Action, organization string, resource model.Resource) *model.Call {
	return &model.Call{
		Operation:    model.Operation{Action: action},
		Actor:        model.Actor{Type: model.ActorSystem, Name: "holdfast"},
		Organization: organization,
		Resource:     resource,
	}
}

const (
	// auditDelay is how long an entry waits for others to share its sync.
	auditDelay = 40 * time.Millisecond
	// auditBacklog is how many entries may wait. Beyond that, requests wait, so that
	// memory is bounded and no entry is dropped. Twice as many are kept of the
	// entries that could not be written.
	auditBacklog = 8192
)

// AuditQueue writes the entries of calls that changed nothing, many per sync,
// together with the last use of keys.
type AuditQueue struct {
	engine  *Core
	Entries chan *model.AuditEntry
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
	// unwritten holds entries that could not be written, for example on a full
	// disk. They are retried with the next batch. Beyond twice auditBacklog the
	// oldest are dropped, and their number is logged.
	unwritten []*model.AuditEntry

	mu   sync.Mutex
	used map[string]KeyUse
}

// KeyUse records when and from which address a key was last used.
type KeyUse struct {
	At time.Time
	IP string
}

func startAuditQueue(c *Core) *AuditQueue {
	q := &AuditQueue{
		engine:  c,
		Entries: make(chan *model.AuditEntry, auditBacklog),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
		used:    map[string]KeyUse{},
	}
	go q.run()
	return q
}

// Add queues entries. It logs an entry that arrives after Close: its request was
// cut off.
func (q *AuditQueue) Add(entries ...*model.AuditEntry) {
	for _, entry := range entries {
		select {
		case q.Entries <- entry:
		case <-q.done:
			q.engine.Log.Warn("a request outlived the audit log", "action", entry.Action, "request", entry.RequestID)
		}
	}
}

// Touch records the use of a key.
func (q *AuditQueue) Touch(key string, use KeyUse) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used[key] = use
}

// Close writes the queued entries and ends the queue.
func (q *AuditQueue) Close() {
	q.once.Do(func() { close(q.closing) })
	<-q.done
}

func (q *AuditQueue) run() {
	defer close(q.done)
	for {
		select {
		case entry := <-q.Entries:
			q.write(q.gather(entry))
		case <-q.closing:
			q.write(q.rest())
			return
		}
	}
}

// rest takes the queued entries without waiting for more.
func (q *AuditQueue) rest() []*model.AuditEntry {
	var batch []*model.AuditEntry
	for {
		select {
		case entry := <-q.Entries:
			batch = append(batch, entry)
		default:
			return batch
		}
	}
}

// gather collects entries until auditDelay has passed or the batch is full.
func (q *AuditQueue) gather(first *model.AuditEntry) []*model.AuditEntry {
	batch := []*model.AuditEntry{first}
	timer := time.NewTimer(auditDelay)
	defer timer.Stop()
	for len(batch) < auditBacklog {
		select {
		case entry := <-q.Entries:
			batch = append(batch, entry)
		case <-q.closing:
			return append(batch, q.rest()...)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// write commits a batch together with the last use of keys.
func (q *AuditQueue) write(batch []*model.AuditEntry) {
	batch = append(q.unwritten, batch...)
	if lost := len(batch) - 2*auditBacklog; lost > 0 {
		q.engine.Log.Error("audit entries are lost: they could not be written for too long", "count", lost)
		batch = batch[lost:]
	}
	q.unwritten = nil
	if err := q.commit(batch, q.takeUsed()); err != nil {
		q.engine.Log.Error("write audit entries", "count", len(batch), "error", err)
		q.unwritten = batch
	}
}

func (q *AuditQueue) takeUsed() map[string]KeyUse {
	q.mu.Lock()
	defer q.mu.Unlock()
	used := q.used
	q.used = map[string]KeyUse{}
	return used
}

func (q *AuditQueue) commit(batch []*model.AuditEntry, used map[string]KeyUse) error {
	return q.engine.Meta.Update(func(tx *meta.Tx) error {
		if err := tx.AppendAudit(q.engine.Chain(), batch...); err != nil {
			return err
		}
		for id, use := range used {
			err := tx.Keys().Change(id, func(k *model.Key) { k.LastUsedAt, k.LastUsedIP = &use.At, &use.IP })
			if err != nil && !errors.Is(err, meta.ErrNotFound) { // revoked since, and replaced by another
				return err
			}
		}
		return nil
	})
}
