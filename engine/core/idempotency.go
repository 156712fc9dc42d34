package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// IdempotencyLife is how long the response to a request with an Idempotency-Key
	// is kept.
	IdempotencyLife = 24 * time.Hour
	// IdempotencyKeep is how many responses are kept for one API key; beyond that the
	// oldest are removed early.
	IdempotencyKeep = 10_000
	// IdempotencyKeepBytes is how many bytes of them are kept for one API key, and
	// MaxKeptAnswer the size of the largest answer that is kept.
	IdempotencyKeepBytes = 16 << 20
	MaxKeptAnswer        = 64 << 10
)

// FirstAnswer is the error of a call that repeats an earlier one: the client gets the
// data of the first response.
type FirstAnswer struct{ Data []byte }

// Error implements error.
func (*FirstAnswer) Error() string { return "the request was answered before" }

// ClaimIdempotencyKey claims the Idempotency-Key of a call that has one. Each operation that
// accepts the header calls it once, after validating the request's syntax and before
// any lookup. The error is a FirstAnswer if the request was answered before. It is a
// conflict if the first request had different content, is still in progress, or was
// carried out by an appliance that died before it could answer. A claimed call must
// be ended with EndIdempotent.
func (c *Core) ClaimIdempotencyKey(call *model.Call) error {
	return c.ClaimIdempotencyKeyStreamed(call, nil)
}

// ClaimIdempotencyKeyStreamed is ClaimIdempotencyKey for a call with a streamed body. digest reads all of
// the body, to tell whether the call repeats an earlier one; it is only called if
// there is a response to repeat. A nil digest means that Repeatable.Content is
// everything.
func (c *Core) ClaimIdempotencyKeyStreamed(call *model.Call, digest func() ([]byte, error)) error {
	r := call.Repeatable
	if r == nil {
		return nil
	}
	request := model.IdempotentRequest{
		ID: FormatID("", c.IDs.Next(c.Clock())), APIKey: call.Actor.ID,
		Hash: HashParts(call.Actor.ID, r.Route, r.Key), CreatedAt: c.RetentionClock(),
	}
	if digest == nil {
		request.Fingerprint = c.fingerprint(r.Content)
	}
	first, busy, err := c.firstIdempotent(call, request)
	switch {
	case err != nil || call.Idempotent != "":
		return err
	case digest != nil && !busy && first.Answer != nil:
		body, err := digest()
		if err != nil {
			return err
		}
		request.Fingerprint = c.FingerprintStreamed(call, body)
	case digest != nil: // the reason for a missing response does not depend on it
		request.Fingerprint = first.Fingerprint
	}
	answer, err := c.replay(first, request, busy)
	if err != nil {
		return err
	}
	return &FirstAnswer{answer}
}

// FingerprintStreamed returns the fingerprint of a call with the body's digest.
func (c *Core) FingerprintStreamed(call *model.Call, digest []byte) []byte {
	return c.fingerprint(append(slices.Clone(call.Repeatable.Content), digest...))
}

// firstIdempotent makes the request the one that the call carries out, unless an earlier
// one has its key: it then returns that one, and whether it is in progress.
func (c *Core) firstIdempotent(call *model.Call, request model.IdempotentRequest) (first model.IdempotentRequest, busy bool, err error) {
	c.once.add(request.ID)
	err = c.Meta.Update(func(tx *meta.Tx) (err error) {
		first, busy, err = c.claimIdempotent(tx, request)
		return err
	})
	if err == nil && first.ID == request.ID {
		call.Idempotent = request.ID
		return first, true, nil
	}
	c.once.drop(request.ID)
	return first, busy, ExplainDiskFull(err)
}

// claimIdempotent returns the first request with the key, and whether it is in progress:
// this one, unless an earlier one counts. One that a crash interrupted before it
// changed anything does not count.
func (c *Core) claimIdempotent(tx *meta.Tx, request model.IdempotentRequest) (_ model.IdempotentRequest, busy bool, _ error) {
	first, err := tx.IdempotentRequests().Find(meta.ByHash, request.Hash)
	if err == nil {
		// Checked in the transaction: a request's end is committed before it is visible here.
		busy := c.once.has(first.ID)
		if busy || !c.outlived(first) && (first.Done != nil || first.Answer != nil) {
			return first, busy, nil
		}
		err = tx.IdempotentRequests().Delete(first.ID)
	}
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return first, false, err
	}
	return request, true, tx.IdempotentRequests().Insert(request)
}

// replay returns the response to the first request for the second, or why there is
// none.
func (c *Core) replay(first, second model.IdempotentRequest, busy bool) ([]byte, error) {
	switch {
	case !hmac.Equal(first.Fingerprint, second.Fingerprint):
		return nil, model.Errorf(model.CodeConflict,
			"Idempotency-Key: was used within the last %.0f hours for another request; a new request needs a new key", IdempotencyLife.Hours())
	case first.Answer != nil: // sealed: it may hold a password
		answer, err := c.Sealer.Open(answerPurpose(first.ID), first.Answer)
		return []byte(answer.Reveal()), err
	case busy:
		return nil, model.Errorf(model.CodeConflict, "Idempotency-Key: the first request with this key is still under way; try again when it is done")
	default:
		return nil, model.Errorf(model.CodeConflict,
			"Idempotency-Key: the first request with this key was carried out (%s %s), and its answer is not kept; read the current state", first.Done.Type, strings.TrimSuffix(first.Done.ID+"/"+objectName(*first.Done), "/"))
	}
}

// objectName returns an object's name in its bucket, whose id is the resource's ID; ""
// for other resources.
func objectName(r model.Resource) string {
	if r.Type == model.ResourceObject {
		return r.Name
	}
	return ""
}

// EndIdempotent ends a claim of ClaimIdempotencyKey. It stores the response's data; without data,
// because nothing was changed, it frees the key. Of a large answer, only what was done
// is kept; if nothing was, the key is free, too. The data is on disk when EndIdempotent
// returns, because a later request must get it.
func (c *Core) EndIdempotent(call *model.Call, answer []byte) {
	if call.Idempotent == "" {
		return
	}
	defer c.once.drop(call.Idempotent)
	id := call.Idempotent
	var sealed []byte
	if answer != nil && len(answer) <= MaxKeptAnswer {
		sealed = c.Sealer.Seal(answerPurpose(id), model.NewSecret(string(answer)))
	}
	err := c.Meta.Update(func(tx *meta.Tx) error {
		if sealed == nil {
			return forgetUndone(tx, id)
		}
		return tx.IdempotentRequests().Change(id, func(r *model.IdempotentRequest) {
			r.Answer = sealed
			if call.Repeatable != nil && call.Repeatable.Fingerprint != nil {
				r.Fingerprint = call.Repeatable.Fingerprint
			}
		})
	})
	call.Idempotent = ""
	if err != nil { // the record at least says whether it was done
		c.Log.Error("keep the answer to a request with an Idempotency-Key", "request_id", call.RequestID, "error", err)
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

// MarkIdempotentDone records, in the transaction of a change, that the request with the id
// once ("" for none) was carried out, so that this is known after a crash.
func MarkIdempotentDone(tx *meta.Tx, once string, done model.Resource) error {
	if once == "" {
		return nil
	}
	err := tx.IdempotentRequests().Change(once, func(r *model.IdempotentRequest) { r.Done = &done })
	if errors.Is(err, meta.ErrNotFound) { // it has expired
		return nil
	}
	return err
}

// ExpireIdempotent removes expired responses, and the oldest of API keys with too
// many. It looks for them without keeping others from writing.
func (c *Core) ExpireIdempotent() error {
	var drop, ahead []string
	err := c.Meta.View(func(tx *meta.Tx) (err error) {
		drop, ahead, err = c.expiredIdempotent(tx)
		return err
	})
	if err == nil {
		err = Redate(c, (*meta.Tx).IdempotentRequests, ahead, func(r *model.IdempotentRequest) *time.Time { return &r.CreatedAt }, 0)
	}
	if err != nil || len(drop) == 0 {
		return err
	}
	return c.Meta.Update(func(tx *meta.Tx) error {
		for _, id := range drop {
			if err := tx.IdempotentRequests().Delete(id); err != nil && !errors.Is(err, meta.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

// expiredIdempotent returns the ids of what ExpireIdempotent removes, and of what a clock that was ahead has dated.
func (c *Core) expiredIdempotent(tx *meta.Tx) (drop, ahead []string, err error) {
	type response struct {
		id    string
		bytes int
	}
	kept := map[string][]response{} // by API key, oldest first
	err = tx.IdempotentRequests().All(func(r model.IdempotentRequest) error {
		switch {
		case c.once.has(r.ID): // in progress
		case c.outlived(r):
			drop = append(drop, r.ID)
		default:
			kept[r.APIKey] = append(kept[r.APIKey], response{r.ID, len(r.Answer)})
			if c.WasAhead(r.CreatedAt, 0) {
				ahead = append(ahead, r.ID)
			}
		}
		return nil
	})
	for _, responses := range kept {
		bytes := 0
		for n, r := range slices.Backward(responses) {
			if bytes += r.bytes; bytes > IdempotencyKeepBytes || len(responses)-n > IdempotencyKeep {
				drop = append(drop, r.id)
			}
		}
	}
	return drop, ahead, err
}

func (c *Core) outlived(r model.IdempotentRequest) bool {
	return c.MayRemove(r.CreatedAt.Add(IdempotencyLife))
}

func answerPurpose(id string) string { return "answer " + id }

// fingerprint is keyed because bodies contain passwords, which could be guessed from
// a plain hash.
func (c *Core) fingerprint(content []byte) []byte {
	return c.Signer.Sign("idempotent request " + string(content))
}

// HashParts hashes parts of any length so that different lists have different hashes.
func HashParts(parts ...string) []byte {
	digest := sha256.New()
	for _, part := range parts {
		digest.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		digest.Write([]byte(part))
	}
	return digest.Sum(nil)
}

// idempotentInProgress holds the requests with an Idempotency-Key that are in progress.
type idempotentInProgress struct{ ids sync.Map }

func (s *idempotentInProgress) add(id string) { s.ids.Store(id, nil) }

func (s *idempotentInProgress) drop(id string) { s.ids.Delete(id) }

func (s *idempotentInProgress) has(id string) bool {
	_, found := s.ids.Load(id)
	return found
}
