package objectstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// classify returns the *Error of an attempt that failed.
func (b *bucket) classify(ctx context.Context, act, key string, err error, a *answer) *Error {
	e := &Error{Act: act, Key: key, Store: b.String(), Detail: b.redact(err.Error())}
	body, known := (*bodyError)(nil), (*Error)(nil)
	switch response := answered(err); {
	case errors.As(err, &known):
		return known
	case errors.As(err, &body):
		e.Kind, e.Detail = body.err, ""
	case ctx.Err() != nil:
		e.Kind = ctx.Err()
	case isKind(err):
		e.Kind = kindOf(err)
		e.Detail = without(e.Kind, e.Detail)
	case response.Code != "":
		e.response(response, a)
	case errors.Is(err, errNoCredentials):
		e.Kind, e.Remedy = ErrDenied, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of the shared credentials file in AWS_PROFILE"
	default:
		e.network(err)
	}
	return e
}

// answered returns the error that the store answered, its zero value for others.
func answered(err error) minio.ErrorResponse {
	var r minio.ErrorResponse
	_ = errors.As(err, &r)
	return r
}

// kinds are the errors that this package's own attempts return.
func kinds() []error {
	return []error{ErrNotFound, ErrExists, ErrDenied, ErrLocked, ErrNoStore, ErrClock, ErrUnavailable, ErrCorrupt, ErrFull, ErrUnsupported}
}

func isKind(err error) bool { return kindOf(err) != nil }

func kindOf(err error) error {
	for _, k := range kinds() {
		if errors.Is(err, k) {
			return k
		}
	}
	return nil
}

// network fills in an error without an answer of the store. Certificates do not
// become right by waiting.
func (e *Error) network(err error) {
	e.Kind, e.retry = ErrUnavailable, true
	e.Remedy = "check the network and AWS_ENDPOINT_URL"
	authority, host, invalid, record := x509.UnknownAuthorityError{}, x509.HostnameError{}, x509.CertificateInvalidError{}, tls.RecordHeaderError{}
	switch {
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		e.retry, e.Remedy = false, "the certificate of the endpoint is not trusted: name its authority in AWS_CA_BUNDLE, or correct AWS_ENDPOINT_URL"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		e.retry, e.Remedy = false, "the endpoint does not speak TLS: AWS_ENDPOINT_URL begins with http://, or names another port"
	}
}

// response fills in an error that the store answered.
func (e *Error) response(r minio.ErrorResponse, a *answer) {
	e.Remedy, e.retry, e.Kind = meaning(r, e.Act)
	e.Detail = strings.Join(strings.Fields(fmt.Sprintf("%d %s: %s", r.StatusCode, r.Code, e.Detail)), " ")
	if len(e.Detail) > 300 {
		e.Detail = e.Detail[:300] + "…"
	}
	if e.retry {
		e.RetryAfter = a.retryAfter(time.Now())
	}
	if skew, ok := a.clockSkew(time.Now()); ok && errors.Is(e.Kind, ErrClock) {
		e.Detail = fmt.Sprintf("the store's is %s ahead", skew)
		if skew < 0 {
			e.Detail = fmt.Sprintf("the store's is %s behind", -skew)
		}
	}
}

// meaning says what an answer means: by its code, which is more exact, then by its
// status.
func meaning(r minio.ErrorResponse, act string) (remedy string, retry bool, kind error) {
	switch r.Code {
	case "NoSuchKey", "NoSuchVersion":
		return "", false, ErrNotFound
	case "NoSuchBucket":
		return "create the bucket, or correct the URL or AWS_ENDPOINT_URL", false, ErrNoStore
	case "PreconditionFailed":
		return "", false, ErrExists
	case "RequestTimeTooSkewed", "RequestExpired":
		return "set the clock, and let NTP keep it", false, ErrClock
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity", "AccountProblem", "AllAccessDisabled":
		return "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: they are wrong or were revoked", false, ErrDenied
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "ExpiredTokenException":
		return "the session token has ended: provide new credentials", false, ErrDenied
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException", "InvalidRegion":
		return wrongRegion(r.Region), false, ErrDenied
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage", "StorageFull", "NoSpaceLeftOnDevice", "ServiceQuotaExceededException":
		return "raise the quota or the space of the store, or prune", false, ErrFull
	case "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "InvalidDigest", "IncompleteBody":
		return "the bytes changed on the way, or the source changed meanwhile", true, ErrCorrupt
	case "InvalidRange":
		return "", false, ErrCorrupt
	case "ConditionalRequestConflict", "OperationAborted", "Conflict", "TemporaryRedirect", "RequestTimeout":
		return "", true, ErrUnavailable
	case "ObjectLocked":
		return "", false, ErrLocked
	case "ObjectLockConfigurationNotFoundError", "InvalidBucketObjectLockConfiguration", "NotImplemented", "EntityTooLarge", "MethodNotAllowed", "NoSuchObjectLockConfiguration":
		return "", false, ErrUnsupported
	}
	return meaningOfStatus(r.StatusCode, act)
}

func meaningOfStatus(status int, act string) (remedy string, retry bool, kind error) {
	switch status {
	case http.StatusForbidden, http.StatusUnauthorized:
		return "allow " + rights(act) + " on the bucket to these credentials", false, ErrDenied
	case http.StatusNotFound:
		return "", false, ErrNotFound
	case http.StatusPreconditionFailed:
		return "", false, ErrExists
	case http.StatusInsufficientStorage:
		return "raise the quota or the space of the store, or prune", false, ErrFull
	case http.StatusNotImplemented, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed:
		return "", false, ErrUnsupported
	case http.StatusRequestTimeout, http.StatusTooManyRequests, 499:
		return "", true, ErrUnavailable
	}
	if status >= 500 {
		return "", true, ErrUnavailable
	}
	return "", false, ErrUnsupported
}

// rights names what an act needs, as IAM policies do.
func rights(act string) string {
	return map[string]string{
		"create": "s3:PutObject, s3:GetObject and, with Object Lock, s3:PutObjectRetention",
		"read":   "s3:GetObject",
		"stat":   "s3:GetObject and s3:ListBucket",
		"list":   "s3:ListBucket",
		"delete": "s3:DeleteObject, s3:DeleteObjectVersion, s3:ListBucketVersions, s3:GetObjectVersion and s3:GetObjectRetention",
		"retain": "s3:PutObjectRetention and s3:GetObjectRetention",
		"probe":  "s3:PutObject, s3:GetObject and s3:ListBucket",
	}[act]
}

func wrongRegion(region string) string {
	if region == "" {
		return "AWS_REGION is not the region of the bucket: set it"
	}
	return fmt.Sprintf("the bucket is in another region: set AWS_REGION=%s", region)
}

// redact removes the secrets from a text that the store may have echoed.
func (b *bucket) redact(text string) string {
	v, err := b.credentials.GetWithContext(nil)
	if err != nil {
		return text
	}
	for _, secret := range []string{v.SecretAccessKey, v.SessionToken} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
