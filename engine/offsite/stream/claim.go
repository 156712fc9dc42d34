package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"holdfast/internal/objectstore"
	"holdfast/internal/sealed"
)

// Cut is where one epoch ends and the next begins: the last log object that counts,
// with its hash, and the last point. What the epoch has beyond does not exist for
// readers.
type Cut struct {
	Log   uint64 // 0 before the first
	Hash  Hash
	Point Point // of that epoch; zero for none
	// Last is the time of the newest frame, or of the checkpoint if none follows it.
	Last time.Time
}

// Claim is the right to write: a Writer needs one of its own. Its Token is known to
// the machine that made it and to nobody else, so that it knows its own claims.
type Claim struct {
	Epoch   Epoch
	Parent  Epoch // zero for the first
	Cut     Cut   // of the parent
	Machine string
	Token   string
	Time    time.Time
	// Recovers is the time of the checkpoint that a recovery brings back, zero for other claims. Until a point follows the
	// claim, what recoveries from that checkpoint on need is needed.
	Recovers time.Time
}

// claimJSON is the content of a claim.
type claimJSON struct {
	Format   int       `json:"format"`
	Epoch    string    `json:"epoch"`
	Parent   string    `json:"parent,omitempty"`
	Log      uint64    `json:"log"`
	Hash     []byte    `json:"hash"`
	Point    string    `json:"point,omitempty"`
	Last     time.Time `json:"last"`
	Machine  string    `json:"machine"`
	Token    string    `json:"token"`
	Time     time.Time `json:"time"`
	Recovers time.Time `json:"recovers,omitzero"`
}

func (c Claim) encode() ([]byte, error) {
	j := claimJSON{formatVersion, c.Epoch.String(), "", c.Cut.Log, c.Cut.Hash[:], "", c.Cut.Last.UTC(), c.Machine, c.Token, c.Time.UTC(), c.Recovers.UTC()}
	if c.Parent != (Epoch{}) {
		j.Parent = c.Parent.String()
	}
	if c.Cut.Point != (Point{}) {
		j.Point = c.Cut.Point.key()
	}
	b, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode the claim of an epoch: %w", err)
	}
	return b, nil
}

func decodeClaim(b []byte) (c Claim, err error) {
	var j claimJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return c, corrupt("a claim: %w", err)
	}
	if j.Format != formatVersion {
		return c, fmt.Errorf("%w: a claim of format %d", ErrVersion, j.Format)
	}
	c = Claim{Machine: j.Machine, Token: j.Token, Time: j.Time.UTC(), Recovers: j.Recovers.UTC(), Cut: Cut{Log: j.Log, Last: j.Last.UTC()}}
	epoch, ok := parseEpoch(j.Epoch)
	if c.Epoch = epoch; !ok || copy(c.Cut.Hash[:], j.Hash) != len(Hash{}) {
		return c, corrupt("a claim is malformed")
	}
	if j.Parent == "" {
		return c, nil
	}
	if c.Parent, ok = parseEpoch(j.Parent); !ok || c.Parent.Number >= c.Epoch.Number {
		return c, corrupt("a claim has the parent %q", j.Parent)
	}
	if j.Point == "" {
		return c, nil
	}
	if c.Cut.Point, ok = parsePoint(c.Parent, j.Point); !ok {
		return c, corrupt("a claim has the point %q", j.Point)
	}
	return c, nil
}

// readClaim reads and verifies the claim of an epoch.
func (r *Repository) readClaim(ctx context.Context, e Epoch) (Claim, error) {
	b, err := r.getClaim(ctx, e.key())
	if err != nil {
		return Claim{}, fmt.Errorf("read the claim of epoch %s: %w", e, err)
	}
	c, err := decodeClaim(b)
	if err == nil && c.Epoch != e {
		err = corrupt("the claim of epoch %s is for %s", e, c.Epoch)
	}
	return c, err
}

// getClaim reads a claim or a bid. What a master key sealed that this process lacks may be one only if a
// rotation has announced a later key: without that, anybody who may write to the store could stop all machines.
func (r *Repository) getClaim(ctx context.Context, key string) ([]byte, error) {
	b, err := r.get(ctx, key, maxSmall)
	switch {
	case errors.Is(err, sealed.ErrVersion):
		return nil, corrupt("%s: %w", key, errors.New("it is not sealed as everything of a repository is"))
	case !errors.Is(err, sealed.ErrNoKey):
		return b, err
	}
	announced, lookErr := r.laterKeyAnnounced(ctx)
	if announced {
		err = fmt.Errorf("it is sealed with a later master key; what opens that is missing, so give the passphrase or the identity of the last rotation, too: %w", err)
	}
	if announced || lookErr != nil {
		return nil, errors.Join(lookErr, err)
	}
	return nil, corrupt("%s is sealed with a master key that nobody has announced", key)
}

// ClaimOptions are for Repository.Claim.
type ClaimOptions struct {
	Machine string // a name for people
	// Token is random, and stored on the machine before Claim is called.
	Token string
	// Known are the tokens of the claims that this machine has made or tried.
	Known []string
	// TakeOver claims also where the newest epoch is another machine's.
	TakeOver bool
	// Nonce is for a store that does not refuse the second creator of a key: random,
	// 16 letters and digits in lower case, and the same when Claim is repeated. Where it
	// is empty, the store must refuse.
	Nonce string
	// Recovers is as in Claim.
	Recovers time.Time
	// Retention locks the claim.
	Retention objectstore.Retention
}

// Claim claims the next epoch. The end of the newest one, up to where its log is
// whole, becomes its Cut. It returns ErrTaken when another machine was faster, or has
// the newest epoch and may be alive. It may be repeated after every error.
func (r *Repository) Claim(ctx context.Context, now time.Time, o ClaimOptions) (*History, error) {
	h, err := r.History(ctx)
	if errors.Is(err, ErrNoPoint) {
		return r.claimAfter(ctx, o, Claim{Machine: o.Machine, Token: o.Token, Time: now, Recovers: o.Recovers})
	}
	if err != nil {
		return nil, err
	}
	tip := h.Tip()
	if !o.TakeOver && !o.knows(tip.Token) {
		return nil, fmt.Errorf("%w: %q, which claimed epoch %s at %s", ErrTaken, tip.Machine, tip.Epoch, tip.Time.UTC().Format(time.RFC3339))
	}
	cut, err := h.end(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the end of epoch %s: %w", tip.Epoch, err)
	}
	next, err := r.claimAfter(ctx, o, Claim{Parent: tip.Epoch, Cut: cut, Machine: o.Machine, Token: o.Token, Time: now, Recovers: o.Recovers})
	if err == nil {
		next.Ignored = h.Ignored
	}
	return next, err
}

func (o ClaimOptions) knows(token string) bool {
	return slices.Contains(o.Known, token)
}

// claimAfter claims the first number after the parent's that no object uses. One that
// is not a claim, which anybody can create who may write to the store, is passed over.
func (r *Repository) claimAfter(ctx context.Context, o ClaimOptions, c Claim) (*History, error) {
	for n := uint64(c.Parent.Number) + 1; n <= math.MaxUint32; n++ {
		c.Epoch = Epoch{uint32(n), o.Nonce}
		err := r.claimNumber(ctx, o, c)
		if err == nil {
			return r.newHistory(c), nil
		}
		if !errors.Is(err, errForeign) {
			return nil, fmt.Errorf("claim epoch %s: %w", c.Epoch, err)
		}
		if _, err = r.readClaim(ctx, c.Epoch); err == nil {
			err = ErrTaken
		}
		deadBid := o.Nonce != "" && errors.Is(err, objectstore.ErrNotFound) // of an earlier try that ended before the claim
		if !deadBid && !isJunk(err) {
			return nil, fmt.Errorf("claim epoch %s: %w", c.Epoch, err)
		}
	}
	return nil, fmt.Errorf("claim an epoch: no number follows %d", c.Parent.Number)
}

// claimNumber creates a claim. Without conditional creation several machines may
// succeed at once: each makes a bid, and only one that sees no claim and no lower bid
// goes on. A machine that lost in a race is fenced by the claim of the lower nonce.
func (r *Repository) claimNumber(ctx context.Context, o ClaimOptions, c Claim) error {
	b, err := c.encode()
	if err != nil || o.Nonce == "" {
		return errors.Join(err, r.createSmall(ctx, c.Epoch.key(), b, o.Retention))
	}
	if err := r.createSmall(ctx, bidsPrefix+c.Epoch.String(), b, o.Retention); err != nil {
		return err
	}
	own := c.Epoch
	err = r.unclaimed(ctx, epochsPrefix, own, func(Epoch) bool { return true })
	if err == nil {
		err = r.unclaimed(ctx, bidsPrefix, own, own.yields)
	}
	if err == nil {
		err = r.createSmall(ctx, own.key(), b, o.Retention)
	}
	if err == nil {
		err = r.unclaimed(ctx, epochsPrefix, own, own.yields)
	}
	return err
}

// yields reports whether another claim of the same number has priority.
func (e Epoch) yields(to Epoch) bool { return to.supersedes(e) }

// unclaimed returns ErrTaken when there is a valid claim or bid of the number of own
// that prevails over it.
func (r *Repository) unclaimed(ctx context.Context, prefix string, own Epoch, prevails func(Epoch) bool) error {
	number := Epoch{Number: own.Number}
	for info, err := range r.store.List(ctx, prefix+number.String(), "") {
		if err != nil {
			return err
		}
		e, ok := parseEpoch(info.Key[len(prefix):])
		if !ok || e == own || !prevails(e) {
			continue
		}
		b, err := r.getClaim(ctx, info.Key)
		if err == nil {
			_, err = decodeClaim(b)
		}
		if err == nil {
			return fmt.Errorf("%w: %s has priority", ErrTaken, info.Key)
		}
		if !isJunk(err) {
			return err
		}
	}
	return nil
}

func (r *Repository) createSmall(ctx context.Context, key string, b []byte, retention objectstore.Retention) error {
	body, err := r.seal(key, small(b))
	if err != nil {
		return err
	}
	return r.create(ctx, key, small(b), body, objectstore.CreateOptions{Retention: retention})
}
