package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
	"holdfast/internal/objectstore"
	"holdfast/internal/parallel"
)

// verifiers is how many files are read at a time.
const verifiers = 4

// VerifyOptions are for Verify.
type VerifyOptions struct {
	// Share is which part of the files is read, from 0 to 1, chosen at random. All
	// points and the whole log are read in any case.
	Share float64
	// Since leaves out what only recoveries to a moment before it need.
	Since time.Time
	// Progress is told of the bytes of files that were read; nil is told nothing.
	Progress func(done, total int64)
}

// Verified is the result of Verify.
type Verified struct {
	At time.Time `json:"at"`
	// Point is the time of the newest point that can be recovered, nil for none.
	Point  *time.Time `json:"point"`
	Points int        `json:"points"` // that can be read
	Files  int        `json:"files"`  // all that the points and the log need
	Read   int        `json:"read"`   // of them
	Bytes  int64      `json:"bytes"`  // of those that were read
	Damage []Damage   `json:"damage"`
}

// Damage is an object that is missing or is not what was written.
type Damage struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// Err returns an error if something is damaged or nothing can be recovered.
func (v Verified) Err() error {
	switch {
	case v.Point == nil:
		return errors.New("no point can be recovered")
	case len(v.Damage) > 0:
		return errors.New("the copy is damaged; the objects are named above")
	}
	return nil
}

// Verify reads the copy back: it decrypts it and compares it with its checksums.
func Verify(ctx context.Context, at Location, now time.Time, o VerifyOptions) (v Verified, err error) {
	c, err := connect(ctx, at, objectstore.Options{})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.verify(ctx, now, o)
}

func (c *connection) verify(ctx context.Context, now time.Time, o VerifyOptions) (v Verified, err error) {
	v = Verified{At: now, Damage: []Damage{}}
	h, err := c.repository.History(ctx)
	if err == nil {
		var newest *stream.Checkpoint
		if newest, err = h.Find(ctx, time.Time{}); err == nil {
			v.Point = &newest.Time
		}
		v.addDamage(h.Ignored)
	}
	if errors.Is(err, stream.ErrNoPoint) && len(v.Damage) > 0 {
		return v, nil
	}
	if errors.Is(err, stream.ErrNoPoint) {
		return v, model.Errorf(model.CodeConflict, "there is no point in %s yet: an appliance that runs with --offsite makes the first within a minute", c.store)
	}
	if err != nil {
		return v, err
	}
	needed, err := c.repository.Needed(ctx, o.Since)
	if err != nil {
		return v, fmt.Errorf("read the points and the log: %w", err)
	}
	v.Points, v.Files = len(needed.Points), len(needed.Files)
	v.addDamage(needed.Damage)
	err = c.readFiles(ctx, &v, sample(needed.Files, o.Share), o.Progress)
	slices.SortFunc(v.Damage, func(a, b Damage) int { return cmp.Compare(a.Object, b.Object) })
	v.Damage = slices.Compact(v.Damage)
	return v, err
}

func (v *Verified) addDamage(problems []stream.Problem) {
	for _, p := range problems {
		v.Damage = append(v.Damage, Damage{p.Key, p.Err.Error()})
	}
}

// sample returns a random part of the files: at least one, if there are any.
func sample(files []stream.Reference, share float64) []stream.Reference {
	rand.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	if share >= 1 {
		return files
	}
	return files[:min(len(files), max(1, int(share*float64(len(files)))))]
}

// readFiles reads files and notes which are damaged. An unreachable store ends it.
func (c *connection) readFiles(ctx context.Context, v *Verified, files []stream.Reference, progress func(done, total int64)) error {
	var total int64
	for _, f := range files {
		total += f.Size
	}
	var mu sync.Mutex
	return parallel.Do(ctx, verifiers, slices.Values(files), func(ctx context.Context, queue <-chan stream.Reference) error {
		for f := range queue {
			err := c.readFile(ctx, f)
			if err != nil && !stream.Damaged(err) {
				return err
			}
			mu.Lock()
			v.Read++
			v.Bytes += f.Size
			if err != nil {
				v.Damage = append(v.Damage, Damage{fmt.Sprintf("file %d of epoch %s", f.ID, f.Epoch), err.Error()})
			}
			if progress != nil {
				progress(v.Bytes, total)
			}
			mu.Unlock()
		}
		return nil
	})
}

func (c *connection) readFile(ctx context.Context, f stream.Reference) error {
	r, err := c.repository.Open(ctx, f, 0, -1)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
