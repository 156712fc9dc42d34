package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a Store in an S3 bucket, below a prefix.
type bucket struct {
	name        string
	prefix      string // empty, or ends in a slash
	core        *minio.Core
	transport   *transport
	credentials *credentials.Credentials
	options     Options
}

func openS3(name, prefix string, o Options) (Store, error) {
	b := &bucket{name: name, options: o}
	if prefix != "" {
		b.prefix = prefix + "/"
	}
	if err := b.connect(); err != nil {
		return nil, fmt.Errorf("open %s: %w", b, err)
	}
	return b, nil
}

// connect makes the client, without a request.
func (b *bucket) connect() error {
	settings, err := loadAWS(b.options.Getenv)
	if err != nil {
		return err
	}
	endpoint, lookup, err := settings.s3()
	if err != nil {
		return err
	}
	if b.transport, err = newTransport(b.options, settings.caBundle); err != nil {
		return err
	}
	b.credentials = credentials.New(&provider{getenv: b.options.Getenv, metadata: b.options.InstanceMetadata})
	b.core, err = minio.NewCore(endpoint.Host, &minio.Options{
		Creds:        b.credentials,
		Secure:       endpoint.Scheme == "https",
		Transport:    b.transport,
		Region:       settings.region, // never asked for
		BucketLookup: lookup,
		MaxRetries:   1, // repeat does it
	})
	return err
}

// s3 returns the endpoint, and how the bucket is named in requests to it: a custom
// endpoint rarely has a name in DNS for each bucket.
func (s awsSettings) s3() (*url.URL, minio.BucketLookupType, error) {
	if s.endpoint == "" {
		domain := "amazonaws.com"
		if strings.HasPrefix(s.region, "cn-") {
			domain += ".cn"
		}
		return &url.URL{Scheme: "https", Host: "s3." + s.region + "." + domain}, minio.BucketLookupAuto, nil
	}
	u, err := url.Parse(s.endpoint)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "":
		return nil, 0, errors.New("AWS_ENDPOINT_URL (or endpoint_url of the profile) is http://host:port or https://host:port")
	case strings.Trim(u.Path, "/") != "":
		return nil, 0, fmt.Errorf("the S3 endpoint %s has a path: S3 needs a host or port of its own", u)
	case strings.HasSuffix(u.Hostname(), ".amazonaws.com"):
		return u, minio.BucketLookupAuto, nil
	}
	return u, minio.BucketLookupPath, nil
}

// object returns the name in the bucket of a key.
func (b *bucket) object(key string) string { return b.prefix + key }

// String implements Store.
func (b *bucket) String() string {
	return strings.TrimSuffix("s3://"+b.name+"/"+b.prefix, "/")
}

// Close implements Store.
func (b *bucket) Close() error {
	b.transport.http.CloseIdleConnections()
	return nil
}

// do repeats an attempt of an act until it succeeds or fails for good. Credentials
// that the store refuses are read once more, because they may have been exchanged.
func (b *bucket) do(ctx context.Context, act, key string, attempt func(context.Context) error) error {
	refreshed := false
	return repeat(ctx, b.options.Patience, func() *Error {
		ctx, a := withAnswer(ctx)
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		e := b.classify(ctx, act, key, err, a)
		if errors.Is(e.Kind, ErrDenied) && !refreshed && b.credentialsChanged(ctx) {
			refreshed, e.retry = true, true
		}
		return e
	})
}

// credentialsChanged reads the credentials again and reports whether they are others.
func (b *bucket) credentialsChanged(ctx context.Context) bool {
	old, err := b.credentials.GetWithContext(nil)
	if err != nil || ctx.Err() != nil {
		return false
	}
	b.credentials.Expire()
	fresh, err := b.credentials.GetWithContext(nil)
	return err == nil && fresh != old
}

// check is what every operation on a key begins with.
func (b *bucket) check(act, key string) error {
	if err := checkKey(key); err != nil {
		return b.unsupported(act, key, err)
	}
	return nil
}

func (b *bucket) unsupported(act, key string, err error) error {
	return &Error{Act: act, Key: key, Store: b.String(), Kind: ErrUnsupported, Detail: err.Error()}
}
