package objectstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// probeKey returns a new key for an object of Probe.
func probeKey() string { return "probe/" + strings.ToLower(rand.Text()) }

// Probe implements Store.
func (i *interruptible) Probe(ctx context.Context) (Capabilities, error) {
	key, c := probeKey(), Capabilities{}
	var err error
	if c.ClockSkew, err = i.createProbe(ctx, key); err != nil {
		return c, err
	}
	c.Conditional = errors.Is(i.Create(ctx, key, Bytes("again"), CreateOptions{}), ErrExists)
	if c.ListsWrites, err = lists(ctx, i, key); err != nil {
		return c, err
	}
	c.MayDelete = i.Delete(ctx, key) == nil
	return c, nil
}

// createProbe creates an object and returns how far ahead its time is.
func (i *interruptible) createProbe(ctx context.Context, key string) (time.Duration, error) {
	began := time.Now()
	if err := i.Create(ctx, key, Bytes("probe"), CreateOptions{}); err != nil {
		return 0, err
	}
	info, err := i.Stat(ctx, key)
	return skew(info.Modified, began), err
}

// ClockSkew implements Store. The files of a network file system have the time of its server.
func (i *interruptible) ClockSkew(ctx context.Context) (time.Duration, error) {
	key := probeKey()
	ahead, err := i.createProbe(ctx, key)
	if err == nil {
		err = i.Delete(ctx, key)
	}
	return ahead, err
}

// skew returns how far ahead a time is that a file got between began and now.
func skew(modified, began time.Time) time.Duration {
	switch now := time.Now(); {
	case modified.Before(began):
		return min(0, modified.Sub(began).Round(time.Second))
	case modified.After(now):
		return modified.Sub(now).Round(time.Second)
	}
	return 0
}

// lists reports whether the store lists a key.
func lists(ctx context.Context, s Store, key string) (bool, error) {
	for info, err := range s.List(ctx, key, "") {
		return err == nil && info.Key == key, err
	}
	return false, nil
}

// Probe implements Store.
func (b *bucket) Probe(ctx context.Context) (Capabilities, error) {
	p := &probing{bucket: b, key: probeKey()}
	for _, step := range []func(context.Context) error{p.create, p.list, p.corrupt, p.versioning, p.lock, p.remove} {
		if err := step(ctx); err != nil {
			return p.found, err
		}
	}
	return p.found, nil
}

// ClockSkew implements Store. Every answer has the time.
func (b *bucket) ClockSkew(ctx context.Context) (ahead time.Duration, err error) {
	err = b.do(ctx, "list", "", func(ctx context.Context) error {
		l := &listing{bucket: b, yield: func(Info, error) bool { return false }}
		err := l.run(ctx)
		ahead = answeredSkew(ctx)
		return err
	})
	return ahead, err
}

// answeredSkew returns how far the clock of the store was ahead in the last answer, 0 if that did not say.
func answeredSkew(ctx context.Context) (ahead time.Duration) {
	if a, ok := ctx.Value(answerKey{}).(*answer); ok {
		ahead, _ = a.clockSkew(time.Now())
	}
	return ahead
}

// probing is one call of Probe.
type probing struct {
	bucket *bucket
	key    string
	found  Capabilities
}

// creation returns one of bytes that are 5 long.
func (p *probing) creation(key, text string, conditional bool) *creation {
	h := newDigester()
	_, _ = h.Write([]byte(text))
	return &creation{bucket: p.bucket, key: key, body: Bytes(text), mark: rand.Text(), sums: h.digests(), conditional: conditional}
}

// create creates one object twice. A store may refuse the condition itself.
func (p *probing) create(ctx context.Context) error {
	first := p.creation(p.key, "probe", true)
	err := p.bucket.do(ctx, "probe", p.key, func(ctx context.Context) error {
		err := first.attempt(ctx)
		p.found.ClockSkew = answeredSkew(ctx)
		return err
	})
	if errors.Is(err, ErrUnsupported) {
		first.conditional = false
		err = p.bucket.do(ctx, "probe", p.key, first.attempt)
	} else if err == nil {
		second := p.creation(p.key, "again", true)
		refused := p.bucket.do(ctx, "probe", p.key, second.attempt)
		if refused != nil && !errors.Is(refused, ErrExists) {
			return refused
		}
		p.found.Conditional = refused != nil
		if refused == nil {
			first = second
		}
	}
	if err != nil {
		return err
	}
	err = p.bucket.do(ctx, "probe", p.key, first.compare)
	p.found.Metadata = err == nil
	if errors.Is(err, ErrExists) {
		return nil
	}
	return err
}

func (p *probing) list(ctx context.Context) (err error) {
	p.found.ListsWrites, err = lists(ctx, p.bucket, p.key)
	return err
}

// corrupt sends other bytes than the checksums promise.
func (p *probing) corrupt(ctx context.Context) error {
	c := p.creation(p.key+"-corrupt", "wrong", false)
	c.body = Bytes("wrung")
	ctx, a := withAnswer(ctx)
	err := c.attempt(ctx)
	if err == nil {
		return nil
	}
	e := p.bucket.classify(ctx, "probe", c.key, err, a)
	p.found.Checksums = answered(err).StatusCode == 400
	if p.found.Checksums {
		return nil
	}
	return e
}

// versioning asks what these credentials may not be allowed to know.
func (p *probing) versioning(ctx context.Context) error {
	err := p.bucket.do(ctx, "probe", "", func(ctx context.Context) error {
		c, err := p.bucket.core.GetBucketVersioning(ctx, p.bucket.name)
		p.found.Versioned = c.Enabled()
		return err
	})
	return unlessRefused(err)
}

func (p *probing) lock(ctx context.Context) error {
	err := p.bucket.do(ctx, "probe", "", func(ctx context.Context) error {
		enabled, mode, validity, unit, err := p.bucket.core.GetObjectLockConfig(ctx, p.bucket.name)
		if err != nil {
			return err
		}
		p.found.Lock = enabled == "Enabled"
		if mode != nil && validity != nil && unit != nil {
			day := 24 * time.Hour
			if *unit == minio.Years {
				day *= 365
			}
			p.found.DefaultMode, p.found.DefaultRetention = Mode(*mode), time.Duration(*validity)*day
		}
		return nil
	})
	return unlessRefused(err)
}

// unlessRefused returns the errors that are not an answer to the question.
func unlessRefused(err error) error {
	if errors.Is(err, ErrUnsupported) || errors.Is(err, ErrDenied) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// remove deletes what Probe wrote: first as it is, which shows the right, then the
// versions.
func (p *probing) remove(ctx context.Context) error {
	for _, key := range []string{p.key, p.key + "-corrupt"} {
		err := p.bucket.do(ctx, "probe", key, func(ctx context.Context) error {
			return p.bucket.core.RemoveObject(ctx, p.bucket.name, p.bucket.object(key), minio.RemoveObjectOptions{})
		})
		if errors.Is(err, ErrDenied) || errors.Is(err, ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		p.found.MayDelete = true
		if p.found.Versioned {
			_ = p.bucket.Delete(ctx, key) // may be locked
		}
	}
	return nil
}
