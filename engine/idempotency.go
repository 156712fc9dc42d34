package engine

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// IdempotencyLife is how long the answer to a request with an
	// Idempotency-Key is kept.
	IdempotencyLife = 24 * time.Hour
	// idempotencyKeep is how many answers are kept for one API key; beyond that
	// the oldest go before their time.
	idempotencyKeep = 10_000
)

// BeginOnce claims the call's Idempotency-Key on a route (the method and path
// of the request) for a request with the given content. It returns the data of
// the first answer when the request was answered before. It is a conflict when
// the first request had another content, is still under way, or was carried
// out by an appliance that died before it could answer. A claimed call must be
// ended by EndOnce.
func (e *Engine) BeginOnce(call *model.Call, key, route string, content []byte) (answer []byte, err error) {
	request := model.IdempotentRequest{
		ID: formatID("", e.ids.next(e.clock())), Organization: call.Organization, APIKey: call.Actor.ID,
		Hash: hashParts(call.Actor.ID, route, key), Fingerprint: e.fingerprint(content), CreatedAt: e.clock(),
	}
	e.once.add(request.ID)
	var first model.IdempotentRequest
	var busy bool
	err = e.meta.Update(func(tx *meta.Tx) (err error) {
		first, busy, err = e.claimOnce(tx, request)
		return err
	})
	if err == nil && first.ID == request.ID {
		call.Once = request.ID
		return nil, nil
	}
	e.once.drop(request.ID)
	if err != nil {
		return nil, noRoom(err)
	}
	return e.replay(first, request, busy)
}

// claimOnce returns the first request with the key, and whether it is under
// way: this one, unless there is an earlier one that counts. One that a crash
// cut off before it changed anything does not.
func (e *Engine) claimOnce(tx *meta.Tx, request model.IdempotentRequest) (_ model.IdempotentRequest, busy bool, _ error) {
	first, err := tx.IdempotentRequests().Find(meta.ByHash, request.Hash)
	if err == nil {
		// Asked for in the transaction: an end is committed before it is seen here.
		busy := e.once.has(first.ID)
		if busy || !e.outlived(first) && (first.Done != nil || first.Answer != nil) {
			return first, busy, nil
		}
		err = tx.IdempotentRequests().Delete(first.ID)
	}
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return first, false, err
	}
	return request, true, tx.IdempotentRequests().Insert(request)
}

// replay returns the answer of the first request to the second, or why there
// is none.
func (e *Engine) replay(first, second model.IdempotentRequest, busy bool) ([]byte, error) {
	switch {
	case !hmac.Equal(first.Fingerprint, second.Fingerprint):
		return nil, model.Errorf(model.CodeConflict,
			"Idempotency-Key: was used within the last %.0f hours for another request; a new request needs a new key", IdempotencyLife.Hours())
	case first.Answer != nil: // sealed: it may hold a password
		answer, err := e.sealer.open(answerPurpose(first.ID), first.Answer)
		return []byte(answer.Reveal()), err
	case busy:
		return nil, model.Errorf(model.CodeConflict, "Idempotency-Key: the first request with this key is still under way; try again when it is done")
	default:
		return nil, model.Errorf(model.CodeConflict,
			"Idempotency-Key: the first request with this key was carried out (%s %s), and its answer was lost; read what there is now", first.Done.Type, first.Done.ID)
	}
}

// EndOnce ends what BeginOnce claimed: with the answer's data, which is kept;
// or without one, when nothing was changed, and then the key is free again.
// Who asks for the answer later has to get it, so that it is on disk when this
// returns.
func (e *Engine) EndOnce(call *model.Call, answer []byte) {
	if call.Once == "" {
		return
	}
	defer e.once.drop(call.Once)
	id := call.Once
	var sealed []byte
	if answer != nil {
		sealed = e.sealer.seal(answerPurpose(id), model.NewSecret(string(answer)))
	}
	err := e.meta.Update(func(tx *meta.Tx) error {
		if sealed == nil {
			return forgetUndone(tx, id)
		}
		_, err := tx.IdempotentRequests().Update(id, func(r *model.IdempotentRequest) error {
			r.Answer = sealed
			return nil
		})
		return err
	})
	call.Once = ""
	if err != nil { // the record says at least whether it was done
		e.log.Error("keep the answer to a request with an Idempotency-Key", "request_id", call.RequestID, "error", err)
	}
}

// forgetUndone removes a request that has changed nothing.
func forgetUndone(tx *meta.Tx, id string) error {
	r, err := tx.IdempotentRequests().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && (r.Done != nil || r.Answer != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.IdempotentRequests().Delete(id)
}

// markDone notes, in the transaction of a change, that the call was carried
// out. So it is known after a crash whether it was.
func markDone(tx *meta.Tx, call *model.Call) error {
	if call.Once == "" {
		return nil
	}
	_, err := tx.IdempotentRequests().Update(call.Once, func(r *model.IdempotentRequest) error {
		done := call.Resource
		r.Done = &done
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) { // it has outlived its time
		return nil
	}
	return err
}

// expireOnce removes the answers that have outlived their time, and the oldest
// of who has too many.
func (e *Engine) expireOnce() error {
	return e.meta.Update(func(tx *meta.Tx) error {
		var drop []string
		kept := map[string][]string{}
		if err := tx.IdempotentRequests().All(func(r model.IdempotentRequest) error {
			if e.outlived(r) {
				drop = append(drop, r.ID)
				return nil
			}
			if !e.once.has(r.ID) {
				kept[r.APIKey] = append(kept[r.APIKey], r.ID)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, ids := range kept {
			drop = append(drop, ids[:max(0, len(ids)-idempotencyKeep)]...)
		}
		for _, id := range drop {
			if err := tx.IdempotentRequests().Delete(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *Engine) outlived(r model.IdempotentRequest) bool {
	return !e.clock().Before(r.CreatedAt.Add(IdempotencyLife))
}

func answerPurpose(id string) string { return "answer " + id }

// fingerprint is keyed: bodies hold passwords, which could be guessed from a
// plain hash.
func (e *Engine) fingerprint(content []byte) []byte {
	return e.signer.sign("idempotent request " + string(content))
}

// hashParts hashes parts of any length so that no two lists have one hash.
func hashParts(parts ...string) []byte {
	digest := sha256.New()
	for _, part := range parts {
		digest.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		digest.Write([]byte(part))
	}
	return digest.Sum(nil)
}

// onceSet holds the requests with an Idempotency-Key that are under way.
type onceSet struct{ ids sync.Map }

func (s *onceSet) add(id string)  { s.ids.Store(id, nil) }
func (s *onceSet) drop(id string) { s.ids.Delete(id) }

func (s *onceSet) has(id string) bool {
	_, found := s.ids.Load(id)
	return found
}
