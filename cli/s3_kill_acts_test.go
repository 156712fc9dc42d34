package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"
)

// s3Client is a client of S3. It alone uses its keys, but for those of races.
type s3Client struct {
	*s3Killed
	n      int
	api    *minio.Core
	random *rand.Rand
	raced  int // how often it has competed in this round
}

// s3Act is what a client does. do returns an error if the request was not answered.
type s3Act struct {
	name string
	do   func(*s3Client, context.Context) error
}

// s3Acts lists frequent acts more than once.
func s3Acts() []s3Act {
	return slices.Concat(
		slices.Repeat([]s3Act{{"put", (*s3Client).put}}, 5),
		slices.Repeat([]s3Act{{"copy", (*s3Client).copy}, {"delete", (*s3Client).remove}, {"race", (*s3Client).race}}, 2),
		slices.Repeat([]s3Act{{"complete", (*s3Client).complete}}, 3),
		[]s3Act{{"abort", (*s3Client).abort}},
	)
}

// act does one thing. It reports whether the appliance has answered.
func (c *s3Client) act(ctx context.Context) bool {
	acts := s3Acts()
	act := acts[c.random.IntN(len(acts))]
	err := act.do(c, ctx)
	refusal, refused := errors.AsType[minio.ErrorResponse](err)
	if refused && refusal.StatusCode != 0 {
		c.t.Errorf("%s: %d %s: %s", act.name, refusal.StatusCode, refusal.Code, refusal.Message)
	}
	if err == nil {
		c.count(act.name)
	}
	return err == nil
}

func (k *s3Killed) count(act string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.counts[act]++
}

// content draws a content: small, in the journal, or larger, in a file.
func (c *s3Client) content() s3Content {
	size := c.random.IntN(20_000) + 1
	if c.random.IntN(3) == 0 {
		size = 60_000 + c.random.IntN(300_000)
	}
	return s3Content{c.random.Uint64(), size}
}

// own draws one of the client's keys.
func (c *s3Client) own() (s3Name, *s3State) {
	name := s3Name{s3Bucket, fmt.Sprintf("%d/%d", c.n, c.random.IntN(s3Keys))}
	if c.random.IntN(2) == 0 {
		name.bucket = s3Versioned
	}
	return name, c.objects[name]
}

// stores has a request store something, and notes what came of it.
func (s *s3State) stores(content s3Content, request func() error) error {
	s.maybe = &content
	err := request()
	if err == nil {
		s.stored, s.maybe = content, nil
	}
	return err
}

func (c *s3Client) put(ctx context.Context) error {
	name, state := c.own()
	content := c.content()
	return state.stores(content, func() error { return c.send(ctx, name, content, minio.PutObjectOptions{}) })
}

func (c *s3Client) send(ctx context.Context, to s3Name, content s3Content, opts minio.PutObjectOptions) error {
	_, err := c.api.PutObject(ctx, to.bucket, to.key, bytes.NewReader(content.bytes()), int64(content.size), "", "", opts)
	return err
}

func (c *s3Client) remove(ctx context.Context) error {
	name, state := c.own()
	return state.stores(s3Content{}, func() error {
		return c.api.RemoveObject(ctx, name.bucket, name.key, minio.RemoveObjectOptions{})
	})
}

func (c *s3Client) copy(ctx context.Context) error {
	from, source := c.own()
	to, target := c.own()
	if from == to || source.stored == (s3Content{}) {
		return nil
	}
	return target.stores(source.stored, func() error {
		_, err := c.api.CopyObject(ctx, from.bucket, from.key, to.bucket, to.key, nil, minio.CopySrcOptions{}, minio.PutObjectOptions{})
		return err
	})
}

// s3Race is what clients were told that stored an object unless there was one.
type s3Race struct {
	won, unknown []s3Content
	lost         int
}

// race stores an object unless there is one, as the other clients do at about the same time.
func (c *s3Client) race(ctx context.Context) error {
	name := s3Name{s3Bucket, fmt.Sprintf("race/%d/%d", c.round, c.raced)}
	c.raced++
	content, opts := c.content(), minio.PutObjectOptions{}
	opts.SetMatchETagExcept("*")
	err := c.send(ctx, name, content, opts)
	c.mu.Lock()
	defer c.mu.Unlock()
	race := c.races[name]
	if race == nil {
		race = &s3Race{}
		c.races[name] = race
	}
	refusal, refused := errors.AsType[minio.ErrorResponse](err)
	switch {
	case err == nil:
		race.won = append(race.won, content)
	case refused && refusal.StatusCode == http.StatusPreconditionFailed:
		race.lost++
		return nil
	default:
		race.unknown = append(race.unknown, content)
	}
	return err
}
