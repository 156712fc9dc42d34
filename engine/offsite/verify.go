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

	"holdfast/engine/core"
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
	// Again is what was damaged before: of that, files are read in any case.
	Again []Damage
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
	// Content says what a file is, for people; "" where that is unknown. Database is the id of the database whose file it is, "" for
	// none.
	Content  string `json:"content,omitempty"`
	Database string `json:"database,omitempty"`
	Reason   string `json:"reason"`
}

// String says what is damaged, for the operator.
func (d Damage) String() string {
	what := cmp.Or(d.Content, d.Object)
	if d.Database != "" {
		what += " of the database " + d.Database
	}
	return what
}

// Kinds returns what the damaged files are, each once and without the names of databases.
func (v Verified) Kinds() []string {
	return v.distinct(func(d Damage) string { return d.Content })
}

// Affected is Kinds with the databases, for the operator.
func (v Verified) Affected() []string {
	return v.distinct(func(d Damage) string {
		if d.Content == "" {
			return ""
		}
		return d.String()
	})
}

// distinct returns the texts of the damages, sorted, each once.
func (v Verified) distinct(text func(Damage) string) (all []string) {
	for _, d := range v.Damage {
		if t := text(d); t != "" {
			all = append(all, t)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Err returns an error if something is damaged or nothing can be recovered.
func (v Verified) Err() error {
	switch {
	case v.Point == nil:
		return errors.New("no point can be recovered")
	case len(v.Damage) > 0:
		return errors.New("the copy is damaged; what it is and what can be done is above")
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
		if newest, err = h.FindLacking(ctx, time.Time{}, mayLack); err == nil {
			v.Point = &newest.Time
		}
		v.addDamage(h.Ignored)
		if err == nil {
			err = c.verifyKey(ctx, &v, newest)
		}
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
	damaged, err := c.readFiles(ctx, &v, o.choose(needed.Files), o.Progress)
	if err == nil {
		err = c.addContents(ctx, &v, needed.Points, damaged)
	}
	slices.SortFunc(v.Damage, func(a, b Damage) int { return cmp.Compare(a.Object, b.Object) })
	v.Damage = slices.Compact(v.Damage)
	return v, err
}

// verifyKey notes a point that is whole and has no secret.key: a recovery of it would be worthless.
func (c *connection) verifyKey(ctx context.Context, v *Verified, p *stream.Checkpoint) error {
	has, err := c.hasKey(ctx, p)
	if err == nil && !has {
		v.Damage = append(v.Damage, Damage{
			Object: "the point of " + p.Time.UTC().Format(time.RFC3339Nano), Content: contentOf(stream.Entry{Kind: KindSecret}), Reason: "it has no " + core.KeyFile,
		})
	}
	return err
}

// hasKey reports whether a checkpoint has the key that opens the secrets in the metadata.
func (c *connection) hasKey(ctx context.Context, p *stream.Checkpoint) (bool, error) {
	for e, err := range c.repository.Catalog(ctx, p) {
		if err != nil || e.Kind == KindSecret && e.Name == core.KeyFile {
			return err == nil, err
		}
	}
	return false, nil
}

// refuseWithoutKey refuses to recover a checkpoint without secret.key, before the recovery has claimed the copy.
func (c *connection) refuseWithoutKey(ctx context.Context, p *stream.Checkpoint) error {
	has, err := c.hasKey(ctx, p)
	if err != nil || has {
		return err
	}
	return model.Errorf(model.CodeConflict, "the point of %s has no %s, without which the appliance does not start: name a moment before it with --at; `holdfast recover %s --list` shows what there is",
		p.Time.UTC().Format(time.RFC3339), core.KeyFile, c.store)
}

func (v *Verified) addDamage(problems []stream.Problem) {
	for _, p := range problems {
		d := Damage{Object: p.Key, Reason: p.Err.Error()}
		if p.IsLog() {
			d.Content = "changes that follow in the log"
		}
		v.Damage = append(v.Damage, d)
	}
}

// addContents says what damaged files are, as the newest of some points that has them knows it.
func (c *connection) addContents(ctx context.Context, v *Verified, points []stream.Point, damaged map[stream.Reference]bool) error {
	for _, p := range points {
		if len(damaged) == 0 {
			return nil
		}
		checkpoint, err := c.repository.Checkpoint(ctx, p)
		if err != nil {
			return err
		}
		for e, err := range c.repository.Catalog(ctx, checkpoint) {
			if err != nil {
				return err
			}
			if !damaged[e.Ref] {
				continue
			}
			delete(damaged, e.Ref)
			i := slices.IndexFunc(v.Damage, func(d Damage) bool { return d.Object == fileName(e.Ref) })
			v.Damage[i].Content, v.Damage[i].Database = contentOf(e), e.Owner
		}
	}
	return nil
}

// contentOf says what an entry of a checkpoint is.
func contentOf(e stream.Entry) string {
	switch e.Kind {
	case KindBlob:
		return "large objects"
	case KindSegment:
		return "small objects and names of all"
	case KindRepository:
		return "backups"
	case KindWAL:
		return "WAL"
	case KindMetadata:
		return "the metadata"
	}
	return "the secrets of the appliance"
}

// fileName is what people see of a file's place.
func fileName(f stream.Reference) string { return fmt.Sprintf("file %d of epoch %s", f.ID, f.Epoch) }

// choose returns the files to read.
func (o VerifyOptions) choose(files []stream.Reference) []stream.Reference {
	chosen := slices.Clip(sample(files, o.Share))
	for _, f := range files[len(chosen):] {
		if slices.ContainsFunc(o.Again, func(d Damage) bool { return d.Object == fileName(f) }) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// sample returns a random part of the files: at least one, if there are any.
func sample(files []stream.Reference, share float64) []stream.Reference {
	rand.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	if share >= 1 {
		return files
	}
	return files[:min(len(files), max(1, int(share*float64(len(files)))))]
}

// readFiles reads files, and notes and returns which are damaged. An unreachable store ends it.
func (c *connection) readFiles(ctx context.Context, v *Verified, files []stream.Reference, progress func(done, total int64)) (map[stream.Reference]bool, error) {
	damaged := map[stream.Reference]bool{}
	var total int64
	for _, f := range files {
		total += f.Size
	}
	var mu sync.Mutex
	err := parallel.Do(ctx, verifiers, slices.Values(files), func(ctx context.Context, queue <-chan stream.Reference) error {
		for f := range queue {
			err := c.readFile(ctx, f)
			if err != nil && !stream.Damaged(err) {
				return err
			}
			mu.Lock()
			v.Read++
			v.Bytes += f.Size
			if err != nil {
				damaged[f] = true
				v.Damage = append(v.Damage, Damage{Object: fileName(f), Reason: err.Error()})
			}
			if progress != nil {
				progress(v.Bytes, total)
			}
			mu.Unlock()
		}
		return nil
	})
	return damaged, err
}

func (c *connection) readFile(ctx context.Context, f stream.Reference) error {
	r, err := c.repository.Open(ctx, f, 0, -1)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
