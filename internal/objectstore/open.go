package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"holdfast/internal/durable"
)

// Options are how a store is used. The zero value is right for most.
type Options struct {
	// Limiter limits the bytes a second of all uploads together; nil does not. The
	// caller may change its limit at any time. Its burst is at least 1.
	Limiter *rate.Limiter
	// Patience is how long after its first failure an operation is repeated before
	// it returns ErrUnavailable: 30 seconds if it is 0. A last attempt may take longer.
	Patience time.Duration
	// HeaderTimeout is how long the store may take to answer a request that has
	// arrived: 30 seconds if it is 0.
	HeaderTimeout time.Duration
	// StallTimeout is how long a transfer may stand still: 30 seconds if it is 0.
	StallTimeout time.Duration
	// Unconditional makes Create look for the key before it writes, for stores
	// without conditional writes. Two creators at once can then both succeed.
	Unconditional bool
	// InstanceMetadata allows credentials from the metadata service of a cloud's
	// machine, or of the container, to be asked for where no others are found.
	InstanceMetadata bool
	// Getenv is os.Getenv if it is nil.
	Getenv func(string) string
	// FS is what a directory is written with, durable.OS if it is nil.
	FS durable.FS
}

func (o Options) withDefaults() Options {
	for _, d := range []*time.Duration{&o.Patience, &o.HeaderTimeout, &o.StallTimeout} {
		if *d == 0 {
			*d = 30 * time.Second
		}
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.FS == nil {
		o.FS = durable.OS{}
	}
	return o
}

// Locations are the forms of the locations that Open takes, for messages.
const Locations = "s3://bucket/prefix or file:///path"

// HasScheme reports whether a location has a scheme that Open knows.
func HasScheme(location string) bool {
	u, err := url.Parse(location)
	return err == nil && (u.Scheme == "s3" || u.Scheme == "file")
}

// Open returns the store at location: s3://bucket/prefix or file:///path. It does not
// talk to an S3 store yet; a directory must exist. It ends with ctx, which the store does not keep.
//
// For S3, credentials, region and endpoint are found as the AWS SDKs find them: in
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION,
// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL and AWS_CA_BUNDLE, else in the profile
// AWS_PROFILE of the shared config and credentials files.
func Open(ctx context.Context, location string, o Options) (Store, error) {
	o = o.withDefaults()
	u, err := url.Parse(location)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		// The text is not shown: it may hold a password.
		return nil, errors.New("open the off-site store: its URL is s3://bucket/prefix or file:///path, without user, password and parameters; credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the AWS config file")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("open %s: the URL of a directory has three slashes: file:///path", location)
		}
		return openInterruptible(ctx, filepath.Clean(u.Path), o)
	case "s3":
		prefix := strings.Trim(u.Path, "/")
		if err := checkPrefix(prefix); err != nil || u.Host == "" || u.Port() != "" {
			return nil, fmt.Errorf("open %s: the URL of a bucket is s3://bucket/prefix, the prefix made of letters, digits and \"._=-/\"", location)
		}
		return openS3(u.Host, prefix, o)
	}
	return nil, fmt.Errorf("open %s: the URL begins with s3:// or file://", location)
}
